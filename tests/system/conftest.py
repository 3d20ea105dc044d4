"""Makes the helper modules of this folder importable, and Ctrl-C work in the programs that the tests start."""

import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

# A shell without job control starts background jobs with SIGINT ignored, and children inherit that: tests of Ctrl-C
# would send it in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# So does nohup with SIGHUP.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
