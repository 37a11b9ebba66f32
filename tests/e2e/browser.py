"""A real browser for tests: Chromium, headless, by the WebDriver protocol of chromedriver."""
import base64
import json
import re
import shutil
import subprocess
import urllib.request

from patience import patient

WAIT_S = patient(60)
MISSING = "no chromedriver: Debian's package chromium-driver"


def is_there():
    return shutil.which("chromedriver") is not None


class Browser:
    """One window, whose profile lies in a folder of the caller's."""

    def __init__(self, work):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        port = ""
        for line in self.driver.stdout:
            match = re.search(r"started successfully on port (\d+)", line)
            if match:
                port = match[1]
                break
        self.base = f"http://127.0.0.1:{port}/session"
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                            f"--user-data-dir={work}/profile"]}
        answer = self.post("", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
        self.base += "/" + answer["sessionId"]

    def post(self, path, body):
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return json.load(answer)["value"]

    def open(self, url):
        self.post("/url", {"url": url})

    def run(self, script):
        return self.post("/execute/sync", {"script": script, "args": []})

    def await_true(self, script):
        """Whether the page comes to this, which it looks at whenever it is painted."""
        wait = ("const done = arguments[0]; const until = performance.now() + "
                f"{1000 * WAIT_S // 2}; const look = () => ({script}) ? done(true) : "
                "performance.now() > until ? done(false) : requestAnimationFrame(look); look();")
        self.post("/timeouts", {"script": 1000 * WAIT_S})
        return self.post("/execute/async", {"script": wait, "args": []})

    def emulate(self, width, height, scheme):
        for command, params in (
                ("Emulation.setDeviceMetricsOverride",
                 {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}),
                ("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})):
            self.post("/goog/cdp/execute", {"cmd": command, "params": params})

    def take_picture(self, path):
        with urllib.request.urlopen(self.base + "/screenshot", timeout=WAIT_S) as answer:
            picture = base64.b64decode(json.load(answer)["value"])
        with open(path, "wb") as file:
            file.write(picture)

    def close(self):
        try:
            urllib.request.urlopen(urllib.request.Request(self.base, method="DELETE"), timeout=WAIT_S).close()
        finally:
            self.driver.terminate()
            self.driver.communicate()
