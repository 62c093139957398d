"""Fail if a model needs more kernels, data-movement kernels or bytes than `results/counts.json` says.

    python benchmarks/check.py                    # all small models
    python benchmarks/check.py swin demo          # some
    python benchmarks/check.py --update           # write the table anew
    python benchmarks/check.py --target vulkan --opt-level O2    # another target, another table: counts-vulkan.json
    python benchmarks/check.py --models models    # at full size, from NAME.onnx in a folder: counts-full.json

Counts are exact and do not depend on the machine's speed; times are never asserted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from smartmem_mlir.bench.counts import (
    TARGET,
    above_baseline,
    full_models,
    improvements,
    markdown,
    measure,
    read_table,
    regressions,
    small_models,
)
from smartmem_mlir.errors import SmartMemError

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "test" / "cases" / "zoo"
RESULTS = Path(__file__).resolve().parent / "results"


def main() -> int:
    """Exit code: 0 if nothing got worse, 1 if something did, 2 for a wrong command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names; all by default")
    parser.add_argument("--update", action="store_true", help="write the table anew")
    parser.add_argument("--target", default=TARGET, help="target whose kernels are counted (default: %(default)s)")
    parser.add_argument("--opt-level", help="IREE's optimisation level (default: the target's)")
    parser.add_argument("--models", type=Path, dest="folder", help="folder of models, in place of the small ones")
    parser.add_argument("--table", type=Path, help="the committed table, by default the target's in results/")
    options = parser.parse_args()
    known = small_models(RECIPES) if options.folder is None else full_models(options.folder)
    suffix = "" if options.folder is None else "-full"
    suffix += "" if options.target == TARGET else f"-{options.target}"
    options.table = options.table or RESULTS / f"counts{suffix}.json"
    unknown = [name for name in options.models if name not in known]
    if unknown:
        parser.error(f"unknown model '{unknown[0]}'; models: {', '.join(known)}")
    chosen = {name: write for name, write in known.items() if not options.models or name in options.models}
    try:
        committed = read_table(options.table) if options.table.exists() else None
        if committed is None and not options.update:
            parser.error(f"there is no {options.table}; make it with --update")
        fresh = measure(chosen, lambda name: print(name, flush=True), options.target, options.opt_level)
    except SmartMemError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for line in above_baseline(fresh):
        print(f"above plain IREE: {line}")
    for line in improvements(committed, fresh) if committed is not None else []:
        print(f"better: {line}")
    if options.update:
        kept = committed.models if committed is not None and options.models else {}
        merged = fresh.model_copy(update={"models": {**kept, **fresh.models}, "full": options.folder is not None})
        options.table.parent.mkdir(parents=True, exist_ok=True)
        options.table.write_text(merged.model_dump_json(indent=1, exclude_none=True) + "\n")
        options.table.with_suffix(".md").write_text(markdown(merged))
        return 0
    assert committed is not None
    worse = regressions(committed, fresh)
    for line in worse:
        print(f"worse: {line}", file=sys.stderr)
    print(f"{len(chosen)} models, {len(worse)} regressions")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
