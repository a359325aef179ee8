"""studies: questions with the programs that answer them, each a run folder with numbers, figures, verdicts, a report.

extending: Study, StudyRun, register_study, unregister_study
running:   find_study, execute; on the command line `rdgraph study NAME`

Every name is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from studies.registered_studies import find_study as find_study
    from studies.registered_studies import register_study as register_study
    from studies.registered_studies import unregister_study as unregister_study
    from studies.runs.study import Study as Study
    from studies.runs.study import execute as execute
    from studies.runs.study_run import StudyRun as StudyRun

__all__, __getattr__, __dir__ = lazy_door(__name__)
