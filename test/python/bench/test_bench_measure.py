"""Races between engines: alternation, verification, failures that stay with the engine that failed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from smartmem_mlir.bench.host import cpus_for
from smartmem_mlir.bench.measure import Entrant, Plan, convert, race
from smartmem_mlir.bench.peer_process import PeerError
from smartmem_mlir.bench.reference import Workload
from smartmem_mlir.bench.results import Measurement

Fake = Callable[..., Entrant]
PLAN = Plan(device="cpu", cpus=cpus_for(1), runs=6, rounds=3, time_limit=20.0, tolerance=1e-3)


def _race(entrants: list[Entrant], workload: Workload, folder: Path, plan: Plan = PLAN) -> list[Measurement]:
    return race(entrants, workload, {}, plan, folder, lambda text: None)


def test_engines_take_turns_in_rotating_order(fake: Fake, workload: Workload, tmp_path: Path) -> None:
    log = tmp_path / "log"
    entrants = [fake(name, log=str(log)) for name in ("a", "b", "c")]
    results = _race(entrants, workload, tmp_path / "race")
    assert [m.status for m in results] == ["ok"] * 3
    assert [len(m.times_ms) for m in results] == [6, 6, 6]
    # One verified run each; then three rounds of one warm-up and two timed runs, each round begun by the next engine.
    turns = "".join(name * 3 for name in "abcbcacab")
    assert "".join(log.read_text().split()) == "abc" + turns


def test_idle_engines_are_stopped(fake: Fake, workload: Workload, tmp_path: Path) -> None:
    pid, states = tmp_path / "pid", tmp_path / "states"
    states.touch()
    entrants = [fake("idle", pid=str(pid)), fake("watching", watch=[str(pid), str(states)])]
    assert [m.status for m in _race(entrants, workload, tmp_path / "race")] == ["ok", "ok"]
    # One verified run, then three turns of one warm-up and two timed runs.
    assert states.read_text() == "T" * (1 + 3 * 3)


def test_failures_stay_with_the_engine_that_failed(fake: Fake, workload: Workload, tmp_path: Path) -> None:
    entrants = [
        fake("crashes", fail_in="run", how="crash", after=3),
        fake("good"),
        fake("hangs", fail_in="run", how="hang", after=2, child=str(tmp_path / "child")),
        fake("refuses", fail_in="load", how="raise"),
        fake("elsewhere", backend="vulkan.*"),
        fake("absent", python=tmp_path / "no" / "python"),
    ]
    results = _race(entrants, workload, tmp_path / "race", replace(PLAN, time_limit=4.0))
    statuses = {m.engine: m.status for m in results}
    assert statuses == {
        "crashes": "crashed",
        "good": "ok",
        "hangs": "timed out",
        "refuses": "refused",
        "elsewhere": "wrong backend",
        "absent": "not installed",
    }
    by_name = {m.engine: m for m in results}
    assert len(by_name["good"].times_ms) == 6
    assert by_name["good"].peak_rss_bytes is not None
    assert "not on cpu" in (by_name["elsewhere"].error or "")
    assert "setup absent" in (by_name["absent"].error or "")
    assert all(m.median_ms is None for m in results if m.engine != "good")


def test_a_wrong_result_makes_the_time_worthless(fake: Fake, workload: Workload, tmp_path: Path) -> None:
    wrong, right = _race([fake("wrong", fail_in="run", how="wrong"), fake("right")], workload, tmp_path / "race")
    assert wrong.status == "wrong"
    assert wrong.times_ms
    assert wrong.median_ms is None
    assert wrong.accuracy is not None
    assert wrong.accuracy.max_abs == pytest.approx(1.0)
    assert right.status == "ok"
    assert right.accuracy is not None
    assert right.accuracy.relative_l2 == 0.0


def test_wrong_first_or_wrong_last_is_wrong(fake: Fake, workload: Workload, tmp_path: Path) -> None:
    late = fake("late", fail_in="run", how="wrong", after=4)
    early = fake("early", fail_in="run", how="wrong", until=4)
    assert [m.status for m in _race([late, early], workload, tmp_path / "race")] == ["wrong", "wrong"]


def test_engines_that_do_not_fit_together_are_loaded_for_each_turn(
    fake: Fake, workload: Workload, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    (result,) = _race([fake("big", log=str(log))], workload, tmp_path / "race", replace(PLAN, resident=False))
    assert result.status == "ok"
    assert len(result.times_ms) == 6
    # Each of the three turns loads and verifies again before it warms up.
    assert len(log.read_text().split()) == 1 + 3 * (1 + 1 + 2)


def test_a_slow_engine_does_not_own_the_machine(
    fake: Fake, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smartmem_mlir.bench.measure._TURN_SECONDS", 0.25)
    (result,) = _race([fake("slow", seconds=0.1)], workload, tmp_path / "race", replace(PLAN, runs=100, rounds=2))
    assert 2 <= len(result.times_ms) <= 4


def test_an_engine_that_has_used_its_time_has_no_further_turn(fake: Fake, workload: Workload, tmp_path: Path) -> None:
    log = tmp_path / "log"
    entrants = [fake("slow", seconds=0.2, log=str(log)), fake("fast")]
    slow, fast = _race(entrants, workload, tmp_path / "race", replace(PLAN, seconds=1.0))
    # The first inference, the warm-up and two timed ones; as much again would be over a second.
    assert len(log.read_text().split()) == 1 + 1 + 2
    assert (slow.status, len(slow.times_ms)) == ("ok", 2)
    assert (fast.status, len(fast.times_ms)) == ("ok", 6)


def test_the_last_turn_is_verified_even_if_it_comes_early(fake: Fake, workload: Workload, tmp_path: Path) -> None:
    late = fake("late", seconds=0.2, fail_in="run", how="wrong", after=4)
    (result,) = _race([late], workload, tmp_path / "race", replace(PLAN, seconds=1.0))
    assert result.status == "wrong"


def test_nothing_begins_after_the_deadline(fake: Fake, workload: Workload, tmp_path: Path) -> None:
    late = replace(PLAN, deadline=time.monotonic() - 1)
    (never,) = _race([fake("never")], workload, tmp_path / "late", late)
    assert (never.status, never.times_ms) == ("timed out", ())
    assert "before the engine's turn" in (never.error or "")
    soon = replace(PLAN, runs=200, rounds=100, deadline=time.monotonic() + 3)
    (cut,) = _race([fake("cut", seconds=0.1)], workload, tmp_path / "soon", soon)
    assert cut.status == "ok"
    assert 2 <= len(cut.times_ms) < 40


def test_a_converter_works_on_its_own_copy(fake: Fake, tmp_path: Path) -> None:
    entrant = fake("converter")
    plan = entrant.artifact.read_text()
    folder = tmp_path / "convert"
    folder.mkdir()
    copy = folder / "model.json"
    copy.write_text(plan)
    artifact, seconds = convert(entrant.engine, copy, {}, cpus_for(1), folder, 20.0)
    assert artifact.read_text() == plan
    assert copy.read_text() == "overwritten"
    assert entrant.artifact.read_text() == plan
    assert seconds >= 0


def test_a_converter_that_fails_is_reported(fake: Fake, tmp_path: Path) -> None:
    entrant = fake("converter", fail_in="prepare", how="crash")
    with pytest.raises(PeerError) as caught:
        convert(entrant.engine, entrant.artifact, {}, cpus_for(1), tmp_path / "convert", 20.0)
    assert caught.value.kind == "crashed"
