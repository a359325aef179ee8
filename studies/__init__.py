"""studies: questions with the programs that answer them, each a run folder with numbers, figures, verdicts, a report.

a study of one's own:  Study, StudyRun, register_study, unregister_study
running one:           find_study, execute; on the command line `rdgraph study NAME`

Every name is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from studies.registered_studies import find_study, register_study, unregister_study
    from studies.runs.study import Study, execute
    from studies.runs.study_run import StudyRun

__all__ = ["Study", "StudyRun", "execute", "find_study", "register_study", "unregister_study"]

#: Where every name comes from; it is loaded when it is first asked for.
_ON_USE = {
    "Study": "studies.runs.study",
    "StudyRun": "studies.runs.study_run",
    "execute": "studies.runs.study",
    "find_study": "studies.registered_studies",
    "register_study": "studies.registered_studies",
    "unregister_study": "studies.registered_studies",
}

__getattr__, __dir__ = lazy_door(__name__, _ON_USE)
