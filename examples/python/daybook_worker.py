"""Runs jobs of a Daybook server in Python: one file, no dependencies, Python 3.9 or later.

    from daybook_worker import Worker

    worker = Worker("http://127.0.0.1:8080", token="dbk_...")

    @worker.job("resize")
    def resize(params, job):
        job.log("resizing", width=params["width"])
        job.progress(0.5)
        return {"bytes": 512}

    worker.run()

A handler's return value is the job's result. What it raises fails the job, which is tried again as its attempts say, unless it is
GiveUp. While a handler runs, a thread renews its lease. `job.cancelled` is true once a user wants the job to end, and `job.lost` once
another worker has it: a long handler looks at them, or calls job.check(), which raises. SIGTERM and SIGINT let what runs end
(`grace` seconds), and give the rest back.
"""

import http.client
import json
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request

__all__ = ["Cancelled", "GiveUp", "Job", "Lost", "RetryLater", "ServerError", "Worker"]


class GiveUp(Exception):
    """Raised by a handler: trying again cannot help, so the job fails for good."""


class RetryLater(Exception):
    """Raised by a handler: try again, but not before so many seconds have passed."""

    def __init__(self, message, seconds):
        super().__init__(message)
        self.seconds = seconds


class Cancelled(Exception):
    """A user wants the job to end."""


class Lost(Exception):
    """The lease ran out, and another worker has the job: what this one does counts for nothing."""


class ServerError(Exception):
    """What the server refused, with its code: see docs/errors.md of Daybook."""

    def __init__(self, status, code, detail, details=None):
        super().__init__(f"{code}: {detail}")
        self.status = status
        self.code = code
        self.details = details or {}


class _Stopped(BaseException):
    """A signal came while a claim waited."""


class _Unreachable(OSError):
    """No answer came, or half of one."""


def _passes(error):
    """Whether asking again may help: the server is away, busy, or asks for patience."""
    return isinstance(error, OSError) or error.status >= 500 or error.status in (408, 425, 429)


class Job:
    """What a handler is told of its job, and what it may say about it."""

    def __init__(self, worker, claimed):
        self._worker = worker
        self._lease = claimed["lease"]
        self.id = claimed["id"]
        self.name = claimed["name"]
        self.queue = claimed["queue"]
        self.params = claimed["params"]
        self.attempt = claimed["attempt"]
        self.attempts = claimed["attempts"]
        self.tags = claimed["tags"]
        self.run = claimed["run"]
        self.deadline_at = claimed["deadlineAt"]
        self.cancelled = False
        self.lost = False

    def progress(self, done, note=None):
        """Says how far the work is, from 0 to 1. It renews the lease. A server that is away for a moment is no failure of the job."""
        body = {"done": done}
        if note is not None:
            body["note"] = note
        self._tell("progress", body)

    def log(self, message, level="info", **fields):
        """Writes a line into the log of the run. It renews the lease."""
        body = {"message": str(message), "level": level}
        if fields:
            body["fields"] = fields
        self._tell("log", body)

    def extend(self, lasts=None):
        """Renews the lease; a thread does so by itself while a handler runs."""
        self._say("extend", {} if lasts is None else {"lasts": lasts})

    def check(self):
        """Raises when the handler should end: Cancelled, or Lost."""
        if self.lost:
            raise Lost(f"job {self.id} was given to another worker")
        if self.cancelled:
            raise Cancelled(f"job {self.id} was cancelled")

    def _tell(self, verb, body):
        try:
            self._say(verb, body)
        except (OSError, ServerError) as error:
            if not _passes(error):
                raise
            _note(f"job {self.id} ({self.name}): {error}")

    def _say(self, verb, body):
        try:
            answer = self._worker._post(verb, {"lease": self._lease, **body})
        except ServerError as error:
            if error.code not in ("conflict", "not_found"):
                raise
            self.lost = True
            raise Lost(str(error)) from None
        self.cancelled = self.cancelled or answer["cancelled"]


class Worker:
    """Claims jobs of the names that have handlers, and runs up to `concurrency` of them at once, each in a thread."""

    def __init__(self, server, token=None, *, queues=None, concurrency=1, lease=30.0, wait=20.0, grace=8.0, metadata=None):
        self._base = server.rstrip("/") + "/api/v1/workers/"
        self._token = token
        self._queues = queues
        self._concurrency = concurrency
        self._lease = lease
        self._wait = min(wait, 30.0)
        self._grace = grace
        self._metadata = {"language": "python", "version": sys.version.split()[0], **(metadata or {})}
        self._handlers = {}
        self._stopping = threading.Event()
        self._session = None
        self._claiming = False
        self._running = set()
        self._free = threading.Condition()

    def job(self, name):
        """Makes a function the handler of the jobs of a name: `handler(params, job)`."""

        def register(handler):
            self._handlers[name] = handler
            return handler

        return register

    def stop(self):
        """Claims nothing more. `run` returns once what runs has ended, or `grace` is over."""
        self._stopping.set()
        with self._free:
            self._free.notify_all()

    def run(self, until_idle=False):
        """Works until `stop`, SIGTERM or SIGINT; with `until_idle` also until a claim finds nothing."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._heed)
        try:
            self._work(until_idle)
        finally:
            self._drain()
            # What still runs is given back: a handler that does not end is waited for no longer, and its result is refused.
            self._leave()

    def _work(self, until_idle):
        failures = 0
        while not self._stopping.is_set():
            with self._free:
                places = self._concurrency - len(self._running)
                if places == 0:
                    self._free.wait(0.5)
                    continue
            try:
                claimed = self._claim(places)
                failures = 0
            except _Stopped:
                break
            except (OSError, ServerError) as error:
                if not _passes(error) and error.code not in ("conflict", "not_found"):
                    raise
                failures = min(failures + 1, 10)
                _note(f"{error}; trying again")
                self._stopping.wait(min(30.0, 0.1 * 2**failures) * random.uniform(0.5, 1.5))
                continue
            for each in claimed:
                job = Job(self, each)
                with self._free:
                    self._running.add(job)
                threading.Thread(target=self._execute, args=(job,), name=job.id, daemon=True).start()
            if until_idle and not claimed and not self._running:
                break

    def _heed(self, *_):
        self._stopping.set()
        # What such a claim may have taken is given back when we leave.
        if self._claiming:
            raise _Stopped

    def _claim(self, most):
        if self._session is None:
            body = {"names": sorted(self._handlers), "host": socket.gethostname(), "pid": os.getpid()}
            if self._queues is not None:
                body["queues"] = list(self._queues)
            self._session = self._post("attach", {**body, "metadata": self._metadata})["session"]
        body = {"session": self._session, "most": min(most, 20)}
        body["wait"] = f"{int(self._wait * 1000)}ms"
        body["lease"] = f"{int(self._lease * 1000)}ms"
        try:
            self._claiming = True
            return self._post("claim", body, timeout=self._wait + 30)["items"]
        except ServerError as error:
            # The server took us for gone, as after a long sleep of this machine.
            if error.code in ("conflict", "not_found"):
                self._session = None
            raise
        finally:
            self._claiming = False

    def _execute(self, job):
        over = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(job, over), daemon=True)
        renewing.start()
        try:
            try:
                result = self._handlers[job.name](job.params, job)
                ending = "settle", {} if result is None else {"result": result}
                # What is no JSON is a mistake of the handler, and NaN is none.
                json.dumps(ending, allow_nan=False)
            except BaseException as error:  # noqa: BLE001 - whatever a handler raises, sys.exit too, is the job's failure
                ending = "fail", _failure(error)
            self._end(job, *ending)
        finally:
            over.set()
            with self._free:
                self._running.discard(job)
                self._free.notify_all()

    def _end(self, job, verb, body):
        # Said again until it is heard, or the lease is over: the server does it once, however often a lease says so.
        failures = 0
        while True:
            try:
                self._post(verb, {"lease": job._lease, **body})
                return
            except (OSError, ServerError) as error:
                _note(f"job {job.id} ({job.name}): {error}")
                if not _passes(error):
                    if verb == "settle" and error.code not in ("conflict", "not_found", "unauthorized"):
                        # The server does not take such a result, however often it is told.
                        verb, body = "fail", _failure(error)
                        continue
                    return
            if job.lost:
                return
            failures += 1
            time.sleep(min(5.0, 0.2 * 2 ** min(failures, 5)) * random.uniform(0.5, 1.5))

    def _renew(self, job, over):
        while not over.wait(self._lease / 3):
            try:
                job.extend()
            except Lost:
                return
            except (OSError, ServerError) as error:
                if not _passes(error):
                    return
                # The next renewal comes before the lease runs out.

    def _drain(self):
        end = time.monotonic() + self._grace
        with self._free:
            while self._running and time.monotonic() < end:
                self._free.wait(max(0.0, end - time.monotonic()))

    def _leave(self):
        if self._session is None:
            return
        try:
            self._post("leave", {"session": self._session})
        except (OSError, ServerError) as error:
            _note(str(error))

    def _post(self, verb, body, timeout=30):
        data = json.dumps(body, allow_nan=False).encode()
        request = urllib.request.Request(self._base + verb, data, {"Content-Type": "application/json"})
        if self._token is not None:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            try:
                problem = json.load(error)
            except (ValueError, OSError, http.client.HTTPException):
                problem = {}
            code, detail = problem.get("code", "http"), problem.get("detail", str(error))
            raise ServerError(error.code, code, detail, problem.get("details")) from None
        except (http.client.HTTPException, ValueError) as error:
            raise _Unreachable(f"{type(error).__name__}: {error}") from error


def _note(text):
    print(f"daybook_worker: {text}", file=sys.stderr, flush=True)


def _failure(error):
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    described = {"type": type(error).__name__, "message": str(error) or type(error).__name__, "trace": trace[-16000:]}
    body = {"error": described}
    if isinstance(error, GiveUp):
        body["retryable"] = False
    if isinstance(error, RetryLater):
        body["retryIn"] = f"{max(0, int(error.seconds * 1000))}ms"
    return body
