"""Signals while an engine works: a closed terminal stops it cleanly, and nohup outlives the terminal."""

import os
import signal
import threading

import pytest

from harness.run import launch


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_a_wish_to_stop(number: signal.Signals) -> None:
    stop, said = threading.Event(), []
    before = signal.getsignal(number)
    with launch._signals(stop, said.append):
        os.kill(os.getpid(), number)
        assert stop.wait(5)
    assert len(said) == 1
    assert signal.getsignal(number) is before


def test_a_second_interrupt_leaves_at_once() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt), launch._signals(stop, lambda _line: None):
        signal.raise_signal(signal.SIGINT)


def test_who_asked_to_outlive_the_terminal_does() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = threading.Event()
        with launch._signals(stop, lambda _line: None):
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.wait(0.05)
    finally:
        signal.signal(signal.SIGHUP, before)
