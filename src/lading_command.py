"""The installed command ``lading``: outside the package, so that whatever stops its import ends in one line."""

import importlib
import sys


def main() -> None:
    """Run the command line."""
    try:
        importlib.import_module("lading.cli").main(prog_name="lading")
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    except (ImportError, OSError) as error:
        what = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        sys.stderr.write(
            f"error: Lading cannot be loaded ({what}). Check that you may read it, or install it again.\n"
        )
        sys.exit(2)
