"""Look up known vulnerabilities of the pinned versions; exit code 1 if there are any, 2 if not all could be looked up.

    python scripts/audit.py [OPTION OF PIP-AUDIT ...]

pip-audit ends with 1 in both cases, and with 0 if the service does not know of a package.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PINS = Path(__file__).parents[1] / "constraints.txt"
SERVICE = ("--vulnerability-service", "osv", "--disable-pip", "--no-deps")
ANSWER = ("--format", "json", "--progress-spinner", "off")


def main() -> int:
    """Print what was found."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(PINS), *SERVICE, *ANSWER, *sys.argv[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        reason = (done.stderr.strip().splitlines() or [f"pip-audit ended with {done.returncode}"])[-1]
        print(f"not audited: {reason}", file=sys.stderr)
        return 2
    skipped = [package for package in packages if "skip_reason" in package]
    for package in skipped:
        print(f"not audited: {package['name']}: {package['skip_reason']}", file=sys.stderr)
    found = [(package, flaw) for package in packages for flaw in package.get("vulns", [])]
    for package, flaw in found:
        mended = ", ".join(flaw["fix_versions"]) or "no version"
        print(f"{package['name']} {package['version']}: {flaw['id']}, mended in {mended}")
    print(f"{len(packages) - len(skipped)} packages audited, {len(found)} vulnerabilities")
    return 1 if found else 2 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
