"""`RayEngine`: pieces of work as tasks of a Ray cluster.

Ray schedules them, keeps shared data in its object store, and repeats tasks whose machine died. Without an address, a
cluster is started on this machine, on the loopback device only, and stopped with this process.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, cast

from rdgraph.errors import InvalidArgument, MissingDependency, WorkLost
from rdgraph.run.engines.engine import R, Reporter, T, silent

#: Seconds between two polls of running tasks, and between two progress messages of a worker.
LOOK = 1.0
#: Seconds that stopped work has to save a checkpoint.
GRACE = 10.0
#: How often Ray repeats a task whose machine or process died.
RETRIES = 8
#: A local cluster is reachable from this machine only and sends no usage statistics.
LOOPBACK = "127.0.0.1"
#: Environment variables with which a user sets the authentication of a cluster.
TOKENS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
NOTHING = object()


def import_ray() -> Any:
    """Import Ray, with usage statistics off and workers at the priority of this process."""
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "RAY_worker_niceness"):
        os.environ.setdefault(name, "0")
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingDependency("the engine ray needs Ray: pip install 'rdgraph[ray]'") from None
    return ray


class RayEngine:
    """The machines of a Ray cluster: a task takes one GPU, or as many processors as this process has threads.

    Sums of floating-point numbers depend on the number of threads; every worker has as many as this process, so that
    results are the same to the bit. OMP_NUM_THREADS=1 uses the processors best.

    Args:
        address: The address of a cluster started by `ray start`, such as "auto" or "10.0.0.1:6379"; None is
            RAY_ADDRESS, and where that is not set, a new cluster on this machine.
        options: For `ray.init`, such as num_cpus.

    Raises:
        MissingDependency: Without ray.
        InvalidArgument: For an address at which there is no cluster.
        WorkLost: Where no cluster starts on this machine.
    """

    name = "ray"

    def __init__(self, address: str | None = None, **options: Any) -> None:
        self._address, self._options = address or os.environ.get("RAY_ADDRESS") or None, options
        self._is_ours = False

    @cached_property
    def _ray(self) -> Any:
        """Ray, connected when it is first needed."""
        if self._address is None and not any(name in os.environ for name in TOKENS):
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # known to this cluster only, in no file
        ray = import_ray()
        if not ray.is_initialized():
            self._connect(ray)
            self._is_ours = True
        return ray

    def _connect(self, ray: Any) -> None:
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        if self._address is None:
            local = {"include_dashboard": False, "_node_ip_address": LOOPBACK}
            try:
                ray.init(address="local", **(quiet | local | self._options))
            except Exception as problem:  # Ray raises Exception, TimeoutError and its own types
                ray.shutdown()
                reason = str(problem).strip().partition("\n")[0] or type(problem).__name__
                raise WorkLost(
                    f"Ray did not start on this machine: {reason:.200}; free memory and processors and try again, or "
                    "work without it (engine='local')"
                ) from None
            return
        try:
            ray.init(address=self._address, **(quiet | self._options))
        except (ConnectionError, RuntimeError, ValueError) as problem:
            raise InvalidArgument(
                f"expected a Ray cluster at {self._address}, got none ({problem}); start one with ray start --head"
            ) from None

    def close(self) -> None:
        """Leave the cluster; one of our own ends."""
        if self._is_ours:
            self._ray.shutdown()
            self._is_ours = False
            del self._ray

    # ------------------------------------------------------------------ what there is
    @property
    def nodes(self) -> int:
        """How many machines the cluster has now."""
        return len(self._machines())

    @property
    def slots(self) -> int:
        """How many pieces are done at once: one a card, where there are cards."""
        return max(1, self._room("cuda") or self._room("cpu"))

    def device(self, asked: str) -> str:
        """cuda for "auto" on a cluster with GPUs; a numbered GPU raises InvalidArgument, since Ray chooses the GPU."""
        if asked == "auto":
            return "cuda" if self._room("cuda") else "cpu"
        if asked not in ("cpu", "cuda"):
            raise InvalidArgument(f"expected cpu, cuda or auto with the engine ray, got {asked!r}; Ray chooses the GPU")
        return asked

    def _machines(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _room(self, device: str) -> int:
        """Pieces that the machines have room for at once."""
        need = _need(device)
        return sum(min(int(there.get(name, 0) // count) for name, count in _wanted(need)) for there in self._machines())

    # ------------------------------------------------------------------ doing
    def run(
        self,
        work: Callable[[T, Reporter], R],
        items: Iterable[T],
        *,
        device: str = "cpu",
        hear: Callable[[T, float], None] = silent,
        tell: Callable[[str], object] = silent,
    ) -> Iterator[tuple[T, R]]:
        """See `Engine`; twice as many tasks as there is room for are submitted to Ray, so that no worker is idle."""
        if not self._room(device):
            needed = "a GPU" if _need(device)["num_gpus"] else f"{_need(device)['num_cpus']} processors"
            raise InvalidArgument(
                f"expected a machine with {needed}, got none in the cluster; set OMP_NUM_THREADS to the processors of "
                "a worker, or choose another device"
            )
        ears = self._ears()
        task = self._ray.remote(_perform).options(
            max_retries=RETRIES, runtime_env={"env_vars": {"OMP_NUM_THREADS": str(threads())}}, **_need(device)
        )
        shared, coming, number = self._ray.put(work), iter(items), 0
        under_way: dict[Any, tuple[int, T]] = {}
        listened = room = 0.0
        try:
            while True:
                if time.monotonic() - listened >= LOOK:
                    self._listen(ears, dict(under_way.values()), hear, tell)
                    listened, room = time.monotonic(), max(1, self._room(device))
                while len(under_way) < 2 * room and (item := next(coming, NOTHING)) is not NOTHING:
                    under_way[task.remote(ears, number, shared, item)] = (number, cast("T", item))
                    number += 1
                if not under_way:
                    return
                self._ray.wait(list(under_way), timeout=LOOK)
                done, _ = self._ray.wait(list(under_way), num_returns=len(under_way), timeout=0)
                for ref in done:
                    yield under_way.pop(ref)[1], self._got(ref)
        finally:
            self._listen(ears, {}, hear, tell)
            self._stop(list(under_way))

    def _got(self, ref: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(ref)
        except errors.RayTaskError as problem:
            raise problem.cause from None
        except errors.RayError as problem:
            raise WorkLost(
                f"expected a task to finish in {RETRIES + 1} attempts, got {type(problem).__name__}: "
                f"{str(problem).splitlines()[0]}; run the same command again"
            ) from None

    def _stop(self, refs: list[Any]) -> None:
        """Stop running tasks; they get some seconds to save a checkpoint."""
        if not refs or not self._ray.is_initialized():
            return
        for ref in refs:
            self._ray.cancel(ref, force=False)
        _, unfinished = self._ray.wait(refs, num_returns=len(refs), timeout=GRACE)
        for ref in unfinished:
            with suppress(self._ray.exceptions.RayError, ValueError):
                self._ray.cancel(ref, force=True)

    # ------------------------------------------------------------------ messages
    def _ears(self) -> Any:
        """The actor that receives the workers' messages, on the node of this process."""
        same_node = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            self._ray.get_runtime_context().get_node_id(), soft=True
        )
        return self._ray.remote(Ears).options(num_cpus=0, max_restarts=-1, scheduling_strategy=same_node).remote()

    def _listen(
        self, ears: Any, items: dict[int, T], hear: Callable[[T, float], None], tell: Callable[[str], object]
    ) -> None:
        errors = self._ray.exceptions
        if not self._ray.is_initialized():
            return
        try:
            shares, sentences = self._ray.get(ears.heard.remote(), timeout=LOOK)
        except (errors.RayActorError, errors.GetTimeoutError):
            return  # messages are lost, results are not
        for sentence in sentences:
            tell(sentence)
        for number, share in shares.items():
            if number in items:
                hear(items[number], share)


class Ears:
    """Collects the progress and messages of workers until they are fetched.

    >>> ears = Ears()
    >>> ears.share(3, 0.5), ears.tell("slow"), ears.heard(), ears.heard()
    (None, None, ({3: 0.5}, ['slow']), ({}, []))
    """

    def __init__(self) -> None:
        self._shares: dict[int, float] = {}
        self._sentences: list[str] = []

    def share(self, number: int, share: float) -> None:
        self._shares[number] = share

    def tell(self, sentence: str) -> None:
        self._sentences.append(sentence)

    def heard(self) -> tuple[dict[int, float], list[str]]:
        """Progress and messages of workers since the last call."""
        shares, sentences = self._shares, self._sentences
        self._shares, self._sentences = {}, []
        return shares, sentences


def _perform(ears: Any, number: int, work: Callable[[T, Reporter], R], item: T) -> R:
    """The work on one item, on a worker."""
    last = 0.0

    def share(value: float) -> None:
        nonlocal last
        if time.monotonic() - last >= LOOK:
            last = time.monotonic()
            ears.share.remote(number, value)

    return work(item, Reporter(share, lambda text: ears.tell.remote(str(text))))


def threads() -> int:
    """Threads of this process: torch's where it is loaded."""
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads() if torch else os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)


def _need(device: str) -> dict[str, int]:
    """The resources of a task: a GPU, or a processor for every thread."""
    return {"num_cpus": 1, "num_gpus": 1} if device.startswith("cuda") else {"num_cpus": threads(), "num_gpus": 0}


def _wanted(need: dict[str, int]) -> list[tuple[str, int]]:
    names = {"num_cpus": "CPU", "num_gpus": "GPU"}
    return [(names[name], count) for name, count in need.items() if count]
