# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hidet.report(): what the page says, against what the model is."""

import html.parser
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import hidet
import numpy

# Two products, the first with a bias and a function of each element: a kernel
# each, in whose texts is what HTML has for itself.
TEXT = """
graph main(x: f16[n, 64], w: f16[64, 128], b: f16[128], v: f16[128, 32]) -> y {
  h = matmul(x, w)
  k = add(h, b)
  r = relu(k)
  y = matmul(r, v)
}
"""
N, K, M, P = 48, 64, 128, 32
EMPTY = {"meta", "link"}


class Page(html.parser.HTMLParser):
    """Holds the cells of each table; fails on tags that do not match, and on
    what would be fetched or run."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tables, self.text = [], [], ""
        self.ids, self.links = set(), set()
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert tag not in ("script", "img", "iframe", "object"), tag
        assert "src" not in given, given
        if "href" in given:
            assert given["href"].startswith(("#", "data:")), given
            self.links.add(given["href"])
        self.ids.add("#" + given.get("id", ""))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in ("path", "circle", "line", "polyline"), tag

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data
        if self.open[-1:] == ["td"] or self.open[-2:-1] == ["td"]:
            self.tables[-1][-1][-1] += data


def example():
    model = hidet.compile_text(TEXT, device="sim")
    random = numpy.random.default_rng(0)
    arrays = [
        random.standard_normal(shape).astype("float16")
        for shape in ((N, K), (K, M), (M,), (M, P))
    ]
    return model, arrays


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        model, arrays = example()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.html"
            hidet.report(model, path, *arrays)
            cls.source = path.read_text()
        cls.page = Page(cls.source)
        cls.launches = cls.page.tables[0][1:]

    def test_asks_for_nothing(self):
        addresses = re.findall(r"\b(?:https?:|url\(|@import)", self.source)
        self.assertEqual(addresses, [])

    def test_launches(self):
        """The first row begins with the drawing of the graph."""
        operators = [self.launches[0][1], self.launches[1][0]]
        self.assertEqual(operators, ["matmul, add, relu", "matmul"])
        self.assertEqual(len(self.launches), 2)

    def test_bytes_and_operations(self):
        moved = [
            2 * (N * K + K * M + M + N * M) / 1e6,
            2 * (N * M + M * P + N * P) / 1e6,
        ]
        self.assertEqual(
            [float(row[-6]) for row in self.launches],
            [round(size, 2) for size in moved],
        )
        flop = 2 * N * K * M + 2 * N * M * P
        self.assertIn(f"{flop / 1e9:.2f} G", self.page.text)

    def test_prices(self):
        machine = "an sm_90 of 132 multiprocessors"
        self.assertIn(f"expected, of {machine};", self.page.text)
        self.assertIn("(4.0 TB/s)", self.page.text)
        for row in self.launches:
            self.assertGreater(float(row[-4]), 0.5)
            self.assertLessEqual(int(row[-2].rstrip("%")), 100)
            self.assertLessEqual(int(row[-1].rstrip("%")), 100)

    def test_errors_by_node(self):
        """Of f16, a node's are of the size of a unit in its last place."""
        rows = {row[0]: row for row in self.page.tables[1][1:]}
        self.assertEqual(list(rows), ["h", "k", "r", "y"])
        for name in "hky":
            error = float(rows[name][3])
            self.assertGreater(error, 2**-16)
            self.assertLess(error, 2**-8)

    def test_passes_and_kernels(self):
        for word in ("expand", "fuse", "schedule", "group {", "plan main("):
            self.assertIn(word, self.page.text)
        self.assertTrue(self.page.links - {"data:,"} <= self.page.ids)
        self.assertEqual(self.page.text.count("kernel matmul"), 2)

    def test_no_errors_where_none_are_asked(self):
        model, arrays = example()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.html"
            hidet.report(model, path, *arrays, errors=False)
            self.assertNotIn("Errors by node", path.read_text())

    def test_browser(self):
        """Headless Chromium, where there is one, has nothing to complain of."""
        browser = shutil.which("chromium")
        if not browser:
            self.skipTest("no chromium")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.html"
            path.write_text(self.source)
            ran = subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu"]
                + [f"--user-data-dir={folder}", "--enable-logging=stderr"]
                + ["--dump-dom", path.as_uri()],
                capture_output=True,
                text=True,
                timeout=120,
            )
        self.assertNotIn("CONSOLE", ran.stderr)
        self.assertIn("matmul, add, relu", ran.stdout)


if __name__ == "__main__":
    unittest.main()
