"""Kills a comparison again and again, and checks that it ends in the same table as one that was left alone.

    python scripts/experiments/killed.py geo.tsv runs/killed --kills 5 --seed 0 -- --methods geca --seeds 2

Words behind `--` go to `cgen compare`. The comparison is killed (SIGKILL, with its workers or without) after a random
time, gone on with, and killed again; then everything in compare.json but seconds must be equal.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    """Kill, go on, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=120, help="seconds before a kill, at most")
    parser.add_argument("words", nargs="*")
    asked = parser.parse_intermixed_args()
    command = [sys.executable, "-m", "compgen", "compare", asked.data, *asked.words, "-o"]
    drawn = random.Random(asked.seed)
    killed, whole = asked.out / "killed", asked.out / "whole"
    for number in range(asked.kills):
        process = subprocess.Popen([*command, str(killed)], start_new_session=True)
        time.sleep(drawn.uniform(10, asked.longest))
        done = process.poll() is not None
        if not done:
            (os.killpg if number % 2 else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
        steps = len(list((killed / "steps").glob("*.json")))
        print(f"kill {number + 1}: {'it was done already' if done else f'after {steps} steps'}", flush=True)
    plan = killed / "plan.json"
    subprocess.run([*command, str(killed)], check=True)
    subprocess.run([*command, str(whole)], check=True)
    found = [json.loads((folder / "compare.json").read_text()) for folder in (killed, whole)]
    same_plan = json.loads(plan.read_text())["plan"] == json.loads((whole / "plan.json").read_text())["plan"]
    tables = [name for name in found[0] if name not in ("seconds", "steps", "made", "command")]
    differ = [name for name in tables if found[0][name] != found[1][name]]
    print(f"same plan: {same_plan}; tables that differ: {', '.join(differ) or 'none'}")
    raise SystemExit(bool(differ))


if __name__ == "__main__":
    main()
