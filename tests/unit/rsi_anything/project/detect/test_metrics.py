from typing import Any

import pytest

from rsi_anything.project.detect.code import parse
from rsi_anything.project.detect.metric_words import recognise
from rsi_anything.project.detect.metrics import metrics_in
from rsi_anything.project.detect.scan import SourceFile


def metrics_of(text: str) -> dict[str, Any]:
    code = parse(SourceFile("train.py", len(text), "python", text, whole=True, exact=True))
    assert code is not None
    return {metric.name: metric for metric in metrics_in([code])}


@pytest.mark.parametrize(
    ("line", "name", "direction"),
    [
        ("print(f'step {s} train loss: {a} test loss: {b}')", "test_loss", "minimize"),
        (
            "print(f\"step {i}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}\")",
            "val_loss",
            "minimize",
        ),
        ("print('valid ppl {:8.2f}'.format(math.exp(x)))", "val_perplexity", "minimize"),
        ("print('Test set: Average loss: {:.4f}, Accuracy: {}/{}'.format(a, b, c))", "test_accuracy", "maximize"),
        ("print('RMSE: %s' % rmse)", "rmse", "minimize"),
        ("print('R2 score:', r2)", "r2", "maximize"),
        ("print('val acc: ' + str(acc))", "val_accuracy", "maximize"),
        ("logger.info('eval f1 = %.3f', f1)", "val_f1", "maximize"),
        ("writer.add_scalar('Loss/test', x, step)", "test_loss", "minimize"),
        ("wandb.log({'val/bpb': x})", "val_bpb", "minimize"),
        ("mlflow.log_metric('mae', x)", "mae", "minimize"),
        ("self.log('val_accuracy', x)", "val_accuracy", "maximize"),
        ("json.dump({'test_auc': x}, f)", "test_auc", "maximize"),
        ("print('episode reward: {}'.format(r))", "reward", "maximize"),
        ("print('best_y:', best_y)", "objective", "minimize"),
        ("accuracy_score(y, p)", "accuracy", "maximize"),
        ("print('Accuracy on evaluation data: {} / {}'.format(a, n))", "val_accuracy", "maximize"),
        ("model.compile(metrics=['mae'])", "mae", "minimize"),
        ("print(f'{tok_per_sec} tokens, throughput {t}')", "throughput", "maximize"),
    ],
)
def test_metrics_and_their_direction(line: str, name: str, direction: str) -> None:
    found = metrics_of(line)
    assert name in found
    assert found[name].direction == direction
    assert found[name].evidence[0].line_from == 1
    assert found[name].lowest < found[name].highest


def test_held_out_comes_before_training_and_time() -> None:
    text = "print(f'loss {a:.4f} | step time {b}ms')\nw.add_scalar('Loss/train', a)\n"
    text += "w.add_scalar('Loss/test', b)\nloss.backward()\n"
    assert list(metrics_of(text))[:2] == ["test_loss", "loss"]


def test_units() -> None:
    assert metrics_of("x = F.cross_entropy(a, b)\nprint('val loss: %f' % x)\n")["val_loss"].unit == "nats"
    percent = metrics_of("print('Test set: Accuracy: {}/{} ({:.0f}%)'.format(a, b, c))")["test_accuracy"]
    assert (percent.unit, percent.highest) == ("%", 100.0)
    assert metrics_of("print('val accuracy: %f' % x)")["val_accuracy"].highest == 1.0


@pytest.mark.parametrize(
    "text", ["math.log(loss, 2)", "print('loading the dataset')", "x = np.log('loss', 1)", "print('done')"]
)
def test_what_is_no_metric(text: str) -> None:
    assert metrics_of(text) == {}


@pytest.mark.parametrize(
    ("phrase", "kind"), [("ValLoss", "loss"), ("test/acc@1", "accuracy"), ("bits per byte", "bpb"), ("xyz", None)]
)
def test_words(phrase: str, kind: str | None) -> None:
    found = recognise(phrase)
    assert (found[0].kind if found else None) == kind
