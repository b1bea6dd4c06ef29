# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A report's page: HTML with its style and drawings inside, no script."""

from __future__ import annotations

import importlib.resources
import math
import re
import string
from collections.abc import Iterable, Sequence
from html import escape

from hidet.reports.collect import Launch, Machine, Section

ROW = 24  # Pixels, as page.html has it.


def render(
    title: str,
    sections: Sequence[Section],
    left: Sequence[tuple[str, str]],
) -> str:
    body = [summary_of(sections)]
    if left:
        body.append("<h2>In PyTorch</h2>")
        body.append(table(("operator", "why"), left))
    for i, section in enumerate(sections):
        body += section_of(section, f"s{i}")
    page = importlib.resources.files(__package__).joinpath("page.html")
    text = string.Template(page.read_text())
    return text.substitute(title=escape(title), body="\n".join(body))


def summary_of(sections: Sequence[Section]) -> str:
    launches = [n for s in sections for n in s.launches]
    times = [n.us for n in launches if n.us is not None]
    measured = all(s.measured for s in sections)
    what = "us measured" if measured else "us expected"
    if len(times) < len(launches):
        what += f", of {len(times)} of {len(launches)} launches"
    return facts(
        (
            (len(sections), "parts" if len(sections) != 1 else "part"),
            (len(launches), "launches"),
            (len({n.kernel for n in launches}), "kernels"),
            (f"{sum(n.bytes for n in launches) / 1e6:.1f} MB", "moved"),
            (f"{sum(n.flop for n in launches) / 1e9:.2f} G", "operations of products"),
            (f"{sum(times):.1f}", what),
        )
    )


def facts(rows: Iterable[tuple[object, str]]) -> str:
    inside = "".join(
        f'<div><b>{escape(str(value))}</b><span class="quiet">'
        f"{escape(what)}</span></div>"
        for value, what in rows
    )
    return f'<div class="facts">{inside}</div>'


def section_of(section: Section, name: str) -> Iterable[str]:
    if section.title:
        yield f"<h2>{escape(section.title)}</h2>"
    for message in section.messages:
        yield f"<p><b>Not known:</b> {escape(message)}</p>"
    if section.launches:
        yield "<h3>Launches</h3>"
        yield f"<p>{about(section)}</p>"
        yield launches_of(section, name)
        yield "<h3>Roofline</h3>"
        yield roofline(section.launches, section.machine)
    if section.errors:
        yield "<h3>Errors by node</h3>"
        yield errors_of(section)
    if section.passes:
        yield "<h3>Text after each pass</h3>"
        for step, text in section.passes:
            yield details(step, text)
    if section.kernels:
        yield "<h3>Kernels</h3>"
        for kernel, text in section.kernels:
            yield details(kernel, text, f"{name}-{kernel}")
    if section.choices:
        yield "<h3>Why</h3>"
        yield details(
            f"{len(section.choices)} remarks", "\n".join(section.choices)
        )


def about(section: Section) -> str:
    times = (
        "Times are what each launch added to a run on the GPU."
        if section.measured
        else f"Times are expected, of {section.machine.name}; a dashed bar is a "
        "launch of which nothing is: the least that its bytes take."
    )
    text = (
        f"{times} Lines on the left lead from what makes a tensor to what reads "
        f"it. Shares are of what the memory of {section.machine.name} moves "
        f"({section.machine.bandwidth / 1e12:.1f} TB/s) and of what its "
        "multiprocessors compute in the product's type."
    )
    if section.prepared:
        launches = "launch" if section.prepared == 1 else "launches"
        text += (
            f" Before the first run, once: {section.prepared} more {launches}."
        )
    return escape(text)


def least(launch: Launch, machine: Machine) -> float:
    """Microseconds that its bytes or its operations take."""
    return 1e6 * max(
        launch.bytes / machine.bandwidth,
        launch.flop / peak_of(launch, machine),
    )


def peak_of(launch: Launch, machine: Machine) -> float:
    kind = re.search(r"\bT = (\w+)", launch.template)
    peaks = machine.peaks
    return peaks.get(kind[1] if kind else "", peaks["f32"])


def launches_of(section: Section, name: str) -> str:
    launches = section.launches
    machine = section.machine
    times = [least(n, machine) if n.us is None else n.us for n in launches]
    total = sum(times) or 1.0
    head = (
        "<th>graph</th><th>operators</th><th>module</th><th>kernel</th>"
        "<th>template</th>"
        + "".join(
            f'<th class="number">{word}</th>'
            for word in ("blocks", "threads", "MB", "Gop", "us")
        )
        + "<th>timeline</th>"
        '<th class="number">memory</th><th class="number">peak</th>'
    )
    known = {kernel for kernel, _ in section.kernels}
    rows, start = [], 0.0
    for i, (launch, us) in enumerate(zip(launches, times)):
        cells = []
        if not i:
            span = len(launches)
            cells.append(
                f'<td class="graph" rowspan="{span}">{arcs(launches)}</td>'
            )
        cells += cells_of(launch, f"{name}-{launch.kernel}", known)
        bound = " bound" if launch.us is None else ""
        cells.append(
            f'<td class="time"><div class="bar{bound}" style="margin-left:'
            f"{100 * start / total:.2f}%;width:{100 * us / total:.2f}%"
            '"></div></td>'
        )
        cells += shares_of(launch, machine)
        rows.append(f"<tr>{''.join(cells)}</tr>")
        start += us
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>'
        f"{''.join(rows)}</tbody></table></div>"
    )


def cells_of(launch: Launch, anchor: str, known: set[str]) -> list[str]:
    # A pass that moves axes about makes operators of its own: conv_moved_2.
    operators = ", ".join(
        re.sub(r"_moved(_\d+)?$", "", n.split(" ")[0]) for n in launch.nodes
    )
    kernel = escape(launch.kernel)
    if launch.kernel in known:
        kernel = f'<a href="#{escape(anchor)}">{kernel}</a>'
    return [
        text_cell(operators, "\n".join(launch.nodes)),
        text_cell(launch.module),
        f'<td class="text" title="{escape(launch.kernel)}">{kernel}</td>',
        text_cell(launch.template.split("[")[0], launch.template),
        number(f"{launch.blocks or ''}"),
        number(f"{launch.threads or ''}"),
        number(f"{launch.bytes / 1e6:.2f}"),
        number(f"{launch.flop / 1e9:.2f}" if launch.flop else ""),
        number(f"{launch.us:.2f}" if launch.us is not None else ""),
    ]


def shares_of(launch: Launch, machine: Machine) -> list[str]:
    if not launch.us:
        return [number(""), number("")]
    memory = launch.bytes / machine.bandwidth / launch.us * 1e6
    peak = launch.flop / peak_of(launch, machine) / launch.us * 1e6
    return [
        number(f"{memory:.0%}"),
        number(f"{peak:.0%}" if launch.flop else ""),
    ]


def text_cell(text: str, whole: str = "") -> str:
    return (
        f'<td class="text" title="{escape(whole or text)}">{escape(text)}</td>'
    )


def number(text: str) -> str:
    return f'<td class="number">{escape(text)}</td>'


def arcs(launches: Sequence[Launch]) -> str:
    """A dot for each launch, and a line from each to those that read it."""
    made: dict[str, int] = {}
    lines, dots = [], []
    x = 84
    for i, launch in enumerate(launches):
        y = ROW * i + ROW // 2
        for j in sorted({made[n] for n in launch.reads if n in made}):
            above = ROW * j + ROW // 2
            bow = 0 if i == j + 1 else min(78, 10 + 5 * (i - j))
            lines.append(
                f'<path class="edge" d="M{x} {above}C{x - bow} {above} '
                f'{x - bow} {y} {x} {y}"/>'
            )
        made.update((n, i) for n in launch.writes)
        dots.append(f'<circle class="dot" cx="{x}" cy="{y}" r="3.5"/>')
    height = ROW * len(launches)
    return (
        f'<svg width="96" height="{height}" role="img" '
        f'aria-label="which launch reads what">{"".join(lines + dots)}</svg>'
    )


def roofline(launches: Sequence[Launch], machine: Machine) -> str:
    """Operations a second over operations a byte, both by powers of ten."""
    shown = [n for n in launches if n.us and n.flop and n.bytes]
    if not shown:
        return "<p>No launch has both a time and a product.</p>"
    wide, high, low_x, low_y, per = 720, 300, -1, 9, 120
    tall = high / 6.5

    def at(intensity: float, rate: float) -> tuple[float, float]:
        return (
            40 + per * (math.log10(intensity) - low_x),
            high - tall * (math.log10(rate) - low_y),
        )

    marks = []
    for power in range(low_x, 5):
        x = at(10.0**power, 1e9)[0]
        marks.append(f'<line class="grid" x1="{x}" x2="{x}" y1="8" y2="{high}"/>')
        marks.append(f'<text x="{x - 8}" y="{high + 14}">{10.0**power:g}</text>')
    for power in range(9, 16):
        y = at(1.0, 10.0**power)[1]
        marks.append(f'<line class="grid" x1="40" x2="{wide}" y1="{y}" y2="{y}"/>')
        marks.append(f'<text x="0" y="{y + 4}">1e{power}</text>')
    kinds = {re.sub(r".*\bT = (\w+).*", r"\1", n.template) for n in shown}
    for kind in sorted(kinds & machine.peaks.keys()):
        peak = machine.peaks[kind]
        points = [
            at(0.1, machine.bandwidth / 10),
            at(peak / machine.bandwidth, peak),
            at(10**4.6, peak),
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        marks.append(f'<polyline class="roof" points="{path}"/>')
        x, y = points[2]
        marks.append(f'<text x="{x - 30:.0f}" y="{y - 5:.0f}">{kind}</text>')
    for launch in shown:
        x, y = at(launch.flop / launch.bytes, launch.flop / launch.us * 1e6)
        name = f"{launch.kernel}: {launch.us:.2f} us"
        marks.append(
            f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4">'
            f"<title>{escape(name)}</title></circle>"
        )
    return (
        f'<svg width="{wide + 40}" height="{high + 36}" role="img" '
        f'aria-label="roofline">{"".join(marks)}<text x="300" '
        f'y="{high + 30}">operations a byte; up: operations a second</text>'
        "</svg>"
    )


def errors_of(section: Section) -> str:
    head = (
        "<p>Each node against the same in f32, of random inputs: the largest "
        "difference over the largest value.</p>"
    )
    rows = (
        (
            row["node"],
            row["operator"],
            row["type"],
            f"{row['error']:.2e}",
            f"{row['largest']:.3g}",
        )
        for row in section.errors
    )
    body = table(("node", "operator", "type", "error", "largest value"), rows)
    off = sum(row["error"] > 0 for row in section.errors)
    shown = " open" if off else ""
    return (
        f"{head}<details{shown}><summary>{len(section.errors)} nodes, of which "
        f"{off} differ</summary>{body}</details>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{escape(word)}</th>" for word in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def details(title: str, text: str, anchor: str = "") -> str:
    named = f' id="{escape(anchor)}"' if anchor else ""
    return (
        f"<details{named}><summary>{escape(title)}</summary>"
        f"<pre>{escape(text)}</pre></details>"
    )
