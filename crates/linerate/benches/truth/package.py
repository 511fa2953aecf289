"""One search of the PyPI package MLRsearch over trials at the other end of standard input and output.

The argument is the highest load. Writes a line of JSON for each trial wanted, reads `INTENDED SENT RECEIVED`, and ends with
the bounds of its one goal.
"""

import json
import logging
import sys

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal


class Piped(AbstractMeasurer):
    """A measurer whose trials are made by the program that started this one."""

    def measure(self, intended_duration, intended_load):
        print(json.dumps({"load": intended_load, "duration": intended_duration}), flush=True)
        intended, sent, received = map(int, sys.stdin.readline().split())
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            intended_count=intended,
            offered_count=sent,
            forwarding_count=received,
        )


def main():
    logging.disable(logging.CRITICAL)
    top = float(sys.argv[1])
    goal = SearchGoal(
        loss_ratio=0.0,
        exceed_ratio=0.5,
        relative_width=0.005,
        initial_trial_duration=0.1,
        final_trial_duration=0.1,
        duration_sum=0.5,
        expansion_coefficient=2,
        fail_fast=True,
    )
    config = Config()
    config.goals = [goal]
    config.min_load, config.max_load = top / 100.0, top
    config.warmup_duration = None
    config.search_duration_max = 60.0
    found = [None, None]
    try:
        result = MultipleLossRatioSearch(config).search(Piped(), debug=lambda text: None)[goal]
        if result and result.relevant_lower_bound and result.relevant_upper_bound:
            found = [float(result.relevant_lower_bound), float(result.relevant_upper_bound)]
    except RuntimeError:
        pass
    print(json.dumps({"found": found}), flush=True)


main()
