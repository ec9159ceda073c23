"""A headless Chromium that opens pages of matches, by selenium (dependency group `browser`)."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DRIVER = "chromedriver"
SIZE = (1300, 900)
"""Width and height of the window, pixels."""
TILE = 32
"""Pixels of a square within which the colours of two pictures are compared."""
TIMEOUT_S = 60
"""Longest that a script in a page may take."""

LISTED_MS = "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
"""Milliseconds from opening an index of matches until its list is there."""
FILTER_MS = """const start = performance.now();
filter.value = arguments[0];
filter.dispatchEvent(new Event("input"));
matches.getBoundingClientRect();
return performance.now() - start;"""
"""Milliseconds in which an index of matches filters and places its list."""


def why_not() -> str:
    """Why no browser can be started here; empty where one can."""
    if importlib.util.find_spec("selenium") is None:
        return "needs selenium: pip install --group browser"
    if not any(map(shutil.which, NAMES)):
        return f"needs one of the browsers {', '.join(NAMES)} on the PATH"
    if shutil.which(DRIVER) is None:
        return f"needs {DRIVER} on the PATH (Debian: chromium-driver)"
    return ""


class Chromium:
    """A browser with one tab. Use it as a context manager.

    Attributes:
        driver: Of selenium.
    """

    def __init__(self) -> None:
        """Starts it; what it needs is there, see `why_not`."""
        webdriver = importlib.import_module("selenium.webdriver")
        options = webdriver.ChromeOptions()
        options.binary_location = next(filter(None, map(shutil.which, NAMES)))
        width, height = SIZE
        words = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage"]
        words += [f"--window-size={width},{height}", "--force-device-scale-factor=1"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            words.append("--no-sandbox")  # Chromium refuses to run as root with one
        for word in words:
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(shutil.which(DRIVER))
        self.driver: Any = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.driver.quit()

    def open(self, file: Path, fragment: str = "", ready: str = "palaestraMatch.ready") -> str:
        """Opens a page, by default of a match, and waits for a promise in it; returns why that fails, or nothing."""
        self.driver.get("about:blank")  # another fragment alone would not load the page again
        for forget in (self.console, self.requests):
            forget()
        self.driver.get(file.resolve().as_uri() + fragment)
        return self.wait(f"Promise.resolve({ready}).then(() => '', String)")

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, promise: str, *arguments: Any) -> Any:
        """What the promise of an expression in the page gives; `given` are the arguments in it."""
        script = f"const given = [...arguments], done = given.pop(); Promise.resolve({promise}).then(done)"
        return self.driver.execute_async_script(script, *arguments)

    def picture(self, frame: int) -> np.ndarray:
        """The page's picture of a frame, uint8 ``[height, width, 3]``."""
        canvas = "document.createElement('canvas')"
        drawn = f"((c) => palaestraMatch.draw(given[0], c).then(() => c.toDataURL()))({canvas})"
        content = base64.b64decode(self.wait(drawn, frame).partition(",")[2])
        return np.asarray(importlib.import_module("PIL.Image").open(BytesIO(content)).convert("RGB"))

    def screenshot(self, file: Path, width: int, height: int, script: str) -> tuple[np.ndarray, int]:
        """A page of a match in a window of that size, after a script: uint8 ``[height, width, 3]``.

        Returns:
            The picture, and how many pixels wider than the window the page is.

        Raises:
            RuntimeError: It cannot be opened.
        """
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        if error := self.open(file):
            raise RuntimeError(error)
        self.run(script)
        self.wait("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        content = base64.b64decode(self.driver.get_screenshot_as_base64())
        over = self.run("return document.documentElement.scrollWidth - innerWidth")
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        return np.asarray(importlib.import_module("PIL.Image").open(BytesIO(content)).convert("RGB")), over

    def moves(self) -> Any:
        """A chain of moves of the mouse and presses of keys, to be performed."""
        return importlib.import_module("selenium.webdriver").ActionChains(self.driver)

    def console(self) -> list[str]:
        """What the console says since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that the tab has asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Mean absolute difference of two pictures, of 255.

    Raises:
        ValueError: They differ in size.
    """
    if one.shape != other.shape:
        raise ValueError(f"the pictures have the shapes {one.shape} and {other.shape}")
    return float(np.abs(one.astype(np.int16) - other.astype(np.int16)).mean())


def tile_difference(one: np.ndarray, other: np.ndarray) -> float:
    """Largest difference of the mean colours of two pictures in a square of `TILE` pixels, of 255.

    Small where letters or edges stand a pixel beside each other, large where something is missing.
    """
    rows, columns = (length // TILE for length in one.shape[:2])
    apart = one.astype(np.float64) - other
    tiles = apart[: rows * TILE, : columns * TILE].reshape(rows, TILE, columns, TILE, 3)
    return float(np.abs(tiles.mean(axis=(1, 3))).max())
