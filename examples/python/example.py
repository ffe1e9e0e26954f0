"""A worker of a Daybook server: DAYBOOK_SERVER=http://127.0.0.1:8080 DAYBOOK_TOKEN=dbk_... python3 example.py"""

import os
import time

from daybook_worker import GiveUp, Worker

until_idle = "DAYBOOK_UNTIL_IDLE" in os.environ
worker = Worker(
    os.environ["DAYBOOK_SERVER"], os.environ.get("DAYBOOK_TOKEN"), concurrency=4, wait=1.0 if until_idle else 20.0
)


@worker.job("resize")
def resize(params, job):
    width = params.get("width")
    if not isinstance(width, int):
        raise GiveUp(f"{width!r} is no width")
    for step in range(4):
        job.check()
        time.sleep(float(params.get("seconds", 0)) / 4)
        job.progress((step + 1) / 4)
    job.log("resized", width=width)
    return {"width": width, "by": "python"}


if __name__ == "__main__":
    worker.run(until_idle=until_idle)
