"""Runs the PyPI package MLRsearch over the simulated DUT of the benchmark program, which is at the end of a pipe.

Reads a search a line on stdin as JSON, writes its result a line on stdout. The only argument is the program; it is
called with --simdut and takes `dut TEXT` and `LOAD DURATION` lines, to which it answers `INTENDED SENT RECEIVED`.
"""

import json
import logging
import subprocess
import sys

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal


class SimulatedDut(AbstractMeasurer):
    """A measurer whose trials run in virtual time."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program, "--simdut"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.trials = 0
        self.trial_s = 0.0

    def start(self, dut):
        """A fresh DUT at virtual time zero."""
        self.trials, self.trial_s = 0, 0.0
        self.process.stdin.write(f"dut {dut}\n")

    def measure(self, intended_duration, intended_load):
        self.process.stdin.write(f"{intended_load!r} {intended_duration!r}\n")
        intended, sent, received = map(int, self.process.stdout.readline().split())
        self.trials += 1
        self.trial_s += intended_duration
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            intended_count=intended,
            offered_count=sent,
            forwarding_count=received,
        )


def search(measurer, asked):
    """One search; a goal without both bounds is null."""
    measurer.start(asked["dut"])
    goals = [SearchGoal(**goal) for goal in asked["goals"]]
    config = Config()
    config.goals = goals
    config.min_load, config.max_load = asked["min_load"], asked["max_load"]
    config.warmup_duration = None
    try:
        found = MultipleLossRatioSearch(config).search(measurer, debug=lambda text: None)
    except RuntimeError:
        found = None
    bounds = []
    for goal in goals:
        result = found[goal] if found is not None else None
        if result is None or not result.relevant_lower_bound or not result.relevant_upper_bound:
            bounds.append(None)
            continue
        parts = result.relevant_lower_bound, result.relevant_upper_bound, result.conditional_throughput
        bounds.append([float(part) for part in parts])
    return {"trials": measurer.trials, "trial_s": measurer.trial_s, "goals": bounds}


def main():
    logging.disable(logging.CRITICAL)
    measurer = SimulatedDut(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(search(measurer, json.loads(line))), flush=True)


main()
