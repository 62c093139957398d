#!/usr/bin/env python3
"""The campaigns behind `results/`: every model of the zoo on the CPU, and Swin by batch (the paper's Fig. 10).

    python benchmarks/campaign.py cpu --models models -o out --prepare    # convert and compile, on any machine: an hour
    python benchmarks/campaign.py cpu --models models -o out              # measure, on a quiet one: 40 minutes
    python benchmarks/campaign.py batch --models models/batch -o out-batch [--prepare]

Both leave `results.json`, `results.md` and plots. A model that is in `results.json` is not measured again: a campaign
that was stopped goes on where it was, and one that is to start anew wants another folder, or that file gone. What was
prepared stays in `work/` and is used for as long as model, adapter and compiler stay the same.

Names after the campaign restrict it to some models. The largest two are compiled when it is their turn and not kept,
because an engine's copy of their weights is 4 GB, and race with fewer rivals.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from smartmem_mlir.zoo.cards import CARDS

# TVM, untuned, takes seconds an inference: `--peers` adds it.
PEERS = ("onnxruntime", "openvino", "mnn", "litert", "ncnn", "executorch")
LARGE = ("sd-unet", "pythia")
SLOW = ("sd-vae-decoder", "fst")
"""Models of which one inference takes seconds."""
LARGE_PEERS = ("onnxruntime", "openvino")
BATCHES = (1, 2, 4, 8, 16)
# Alike in all parts of a campaign, or its results could not be in one table.
SETTINGS = ("--runs", "12", "--rounds", "3", "--seconds", "12", "--time-limit", "900")
PREPARE_SECONDS, CONVERT_SECONDS = 3600, 180


@dataclass(frozen=True)
class Part:
    """Models that are measured alike.

    Args:
        models: Their files.
        peers: Rivals.
        threads: Numbers of threads.
        seconds: Time of one model.
        kept: Whether conversions are made beforehand and kept.
    """

    models: tuple[Path, ...]
    peers: tuple[str, ...]
    threads: str
    seconds: int
    kept: bool = True


def cpu(folder: Path) -> list[Part]:
    """Every model of the zoo."""
    files = {name: folder / f"{name}.onnx" for name in CARDS}
    ordinary = tuple(file for name, file in files.items() if name not in (*LARGE, *SLOW))
    slow, large = (tuple(files[name] for name in names) for names in (SLOW, LARGE))
    return [
        Part(ordinary, PEERS, "1,2", 240),
        Part(slow, PEERS, "1,2", 900),
        Part(large, LARGE_PEERS, "1,2", 900, kept=False),
    ]


def batch(folder: Path) -> list[Part]:
    """Swin by batch."""
    return [Part(tuple(folder / f"swin-b{size}.onnx" for size in BATCHES), PEERS[:4], "2", 240)]


CAMPAIGNS = {"cpu": cpu, "batch": batch}


def main() -> int:
    """Exit code: 0, or that of the part that failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", choices=CAMPAIGNS)
    parser.add_argument("names", nargs="*", metavar="MODEL", help="some of the campaign's models; all by default")
    parser.add_argument("--models", type=Path, required=True, help="folder of NAME.onnx, from `smartmem zoo build`")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for results and what is prepared")
    parser.add_argument("--peers", help="rivals, comma separated, in place of the campaign's")
    parser.add_argument("--prepare", action="store_true", help="convert and compile only")
    options = parser.parse_args()
    parts = CAMPAIGNS[options.campaign](options.models)
    known = [file for part in parts for file in part.models]
    chosen = [file for file in known if not options.names or file.stem in options.names]
    unknown = set(options.names) - {file.stem for file in known}
    if unknown:
        parser.error(f"unknown model '{min(unknown)}'; models: {', '.join(file.stem for file in known)}")
    absent = [str(file) for file in chosen if not file.exists()]
    if absent:
        parser.error(f"no such file: {', '.join(absent)}")
    for part in parts:
        models = [str(file) for file in part.models if file in chosen]
        if not models or (options.prepare and not part.kept):
            continue
        peers = options.peers or ",".join(part.peers)
        command = [sys.executable, "-m", "smartmem_mlir.cli.app", "bench", *models, "-o", str(options.output)]
        command += ["--threads", part.threads, "--iree-settings", "O3,O3+im2col", "--peers", peers, *SETTINGS]
        command += ["--peers-dir", str(Path(__file__).resolve().parent / "peers")]
        command += ["--convert-limit", str(CONVERT_SECONDS)]
        command += ["--model-limit", str(PREPARE_SECONDS if options.prepare else part.seconds)]
        command += ["--prepare"] if options.prepare else ["--resume"]
        command += ["--keep"] if part.kept else []
        print(" ".join(command[2:]), flush=True)
        code = subprocess.run(command, check=False).returncode
        if code != 0:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
