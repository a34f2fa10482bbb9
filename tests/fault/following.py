"""
A client that follows runs by server-sent events, comes back when its stream breaks, and writes down what it was told:
each event once, whoever dies meanwhile.
"""
import http.client, json, time
from load import Client, TERMINAL

ENDS = tuple("run." + state for state in TERMINAL)
SILENT = 60  # seconds: a stream says something each 15


class Follower(Client):
    def pick(self):
        """A run of the tenant that goes on. None: there is none, or nobody says so."""
        status, body = self.call("GET", f"/v1/runs?status={self.rng.choice(('queued', 'running'))}&limit=20")
        runs = json.loads(body)["runs"] if status == 200 else []
        return self.rng.choice(runs)["runId"] if runs else None

    def stream(self, run, seen):
        """One connection: its status (0: none). What came whole is in seen."""
        plain = self.rng.random() < 0.5
        h = {"Authorization": "Bearer " + self.bearer}
        if not plain:
            h["Accept"] = "text/event-stream"
        if seen:
            h["Last-Event-ID"] = str(seen[-1][0])
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SILENT)
        status = 0
        try:
            c.request("GET", f"/v1/runs/{run}/events" + ("?stream=1" if plain else ""), headers=h)
            r = c.getresponse()
            status, fields = r.status, {}
            self.answers[f"stream {status}"] = self.answers.get(f"stream {status}", 0) + 1
            while status == 200 and (line := r.readline()):
                key, _, value = line.decode().rstrip("\n").partition(": ")
                if line != b"\n":
                    fields[key] = value
                elif fields:
                    if "data" in fields:
                        e = json.loads(fields["data"])
                        seen.append([int(fields["id"]), e["event_id"], e["event_type"]])
                        if (e["sequence"], e["event_type"]) != (int(fields["id"]), fields["event"]):
                            raise ValueError(f"a frame that contradicts itself: {fields}")
                    fields = {}
        except (OSError, http.client.HTTPException):
            pass
        finally:
            c.close()
        return status

    def follow(self):
        run = self.pick()
        if run is None:
            return
        self.n += 1
        self.note(n=self.n, t=time.time(), ask="follow", run=run)
        seen, breaks, status = [], -1, 0
        while status not in (204, 404) and not self.end:
            status = self.stream(run, seen)
            breaks += 1
            time.sleep(self.rng.uniform(0.02, 0.2))
        self.tell(status, run=run, seen=seen, breaks=breaks)

    def ways(self):
        return [(self.follow, 1)]
