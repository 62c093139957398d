#!/usr/bin/env python3
"""Random movement and compute graphs, compiled by IREE and compared with NumPy.

    python test/python/fuzz/fuzz.py --examples 10000 --output out/fuzz            # the CPU
    python test/python/fuzz/fuzz.py --examples 2000 --target vulkan --output out/fuzz-vulkan

Batches are numbered from `--first`; each is a line of `OUTPUT/batches.jsonl` once it is done, and a batch that has a
line is not run again: a run that is stopped goes on where it was. Programs that fail are in `OUTPUT/failures/` as
MLIR, named by batch and position; `--only BATCH:POSITION` runs one of them again. Exit code: 1 if a program fails
that plain IREE gets right.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from iree_batches import Compiler, Failure, draw, failures

from smartmem_mlir.targets import load_target

BATCH = 50


def main() -> int:
    """Run the batches that have no line yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=10_000, help="programs in all (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first batch (default: %(default)s)")
    parser.add_argument("--target", default="cpu", help="a CPU target or a Vulkan one (default: %(default)s)")
    parser.add_argument("--opt-level", help="IREE's optimisation level (default: the target's)")
    parser.add_argument("--output", type=Path, required=True, help="folder for what was done and what failed")
    parser.add_argument("--only", metavar="BATCH:POSITION", help="one program, whose text and verdict are printed")
    options = parser.parse_args()
    compiler = Compiler.of(load_target(options.target), options.opt_level)
    if options.only:
        number, position = map(int, options.only.split(":"))
        program = draw(number, BATCH)[position]
        found = failures([program], compiler)
        print(program.text(), *(f"// {each.kind}: {each.what}" for each in found), sep="\n")
        return 1 if any(not each.plain for each in found) else 0
    (options.output / "failures").mkdir(parents=True, exist_ok=True)
    log = options.output / "batches.jsonl"
    for number in range(options.first, options.first + -(-options.examples // BATCH)):
        if number in {row["batch"] for row in _rows(log)}:
            continue
        started = time.monotonic()
        programs = draw(number, BATCH)
        found = failures(programs, compiler)
        for each in found:
            _keep(options.output / "failures" / f"{number}-{each.position}.mlir", each)
        row = {"batch": number, "programs": len(programs), "seconds": round(time.monotonic() - started, 1)}
        row["failures"] = [{k: v for k, v in asdict(each).items() if k != "text"} for each in found]
        with log.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
    return _summary(_rows(log))


def _rows(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def _keep(file: Path, failure: Failure) -> None:
    head = f"// {failure.kind}{', plain IREE too' if failure.plain else ''}: {failure.what}\n"
    file.write_text(head + failure.text)


def _summary(rows: list[dict[str, object]]) -> int:
    kinds: Counter[str] = Counter()
    for row in rows:
        for each in row["failures"]:  # type: ignore[attr-defined]
            kinds[f"{each['kind']}{', as in plain IREE' if each['plain'] else ''}"] += 1
    print(f"{sum(row['programs'] for row in rows)} programs", dict(kinds))  # type: ignore[misc]
    return 1 if any("plain" not in kind for kind in kinds) else 0


if __name__ == "__main__":
    sys.exit(main())
