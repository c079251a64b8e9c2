"""The candidate's side of prediction: loads the model that train.py logged with MLflow and predicts the quality of wines."""

from pathlib import Path

import mlflow.sklearn
import pandas as pd


class Wines:
    """The logged model; the latest one, should a candidate log several."""

    def __init__(self) -> None:
        logged = sorted(Path("mlruns").rglob("MLmodel"), key=lambda path: path.stat().st_mtime_ns)
        self.model = mlflow.sklearn.load_model(str(logged[-1].parent))

    def predict(self, rows: list[dict[str, str]]) -> list[float]:
        """Return the quality of each wine; a row maps the columns of the table, without quality, to their text."""
        return [float(quality) for quality in self.model.predict(pd.DataFrame(rows).astype(float))]


def load() -> Wines:
    """Read the logged model below the working directory."""
    return Wines()
