"""Write the table and the plots of campaigns again, and join campaigns that were run in parts.

python benchmarks/render.py part1/results.json part2/results.json -o results/cpu
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from smartmem_mlir.bench import report
from smartmem_mlir.errors import SmartMemError


def main() -> int:
    """Exit code: 0, or 2 for what cannot be read or joined."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS.JSON")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    try:
        campaign = report.merge([report.read_json(path) for path in options.results])
        report.prepare_folder(options.output)
        report.write(campaign, options.output)
    except SmartMemError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
