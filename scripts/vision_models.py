# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Published vision networks that neither torchvision nor transformers has, for
export_models.py: as their papers have them, in the size that a name says, without
what training alone needs. Each ends in class scores or in maps."""
import torch
from torch import nn
from torch.nn import functional


def conv(inputs, outputs, size=1, stride=1, groups=1, act=nn.ReLU):
    """A convolution, its norm, and an activation, or none."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, (size - 1) // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs), *([act()] if act else []))


class Classifier(nn.Module):
    def __init__(self, body, channels, classes=1000):
        super().__init__()
        self.body, self.head = body, nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


# --- U-Net: down by pools, up by transposed convolutions, joined at each size ---

class UNet(nn.Module):
    def __init__(self, width=32, levels=4, classes=2):
        super().__init__()
        widths = [width << i for i in range(levels + 1)]
        self.down = nn.ModuleList(self.pair(i, o) for i, o in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2)
                                for i, o in zip(widths, widths[1:]))
        self.join = nn.ModuleList(self.pair(2 * w, w) for w in widths[:-1])
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def pair(inputs, outputs):
        return nn.Sequential(conv(inputs, outputs, 3), conv(outputs, outputs, 3))

    def forward(self, x):
        kept = []
        for i, down in enumerate(self.down):
            x = down(functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for i in reversed(range(len(self.up))):
            x = self.join[i](torch.cat([kept[i], self.up[i](x)], 1))
        return self.head(x)


# --- YOLOv5: cross-stage parts, a pyramid of pools, and a neck down and up ---

class Bottleneck(nn.Module):
    def __init__(self, width, residual):
        super().__init__()
        self.way = nn.Sequential(conv(width, width, act=nn.SiLU),
                                 conv(width, width, 3, act=nn.SiLU))
        self.residual = residual

    def forward(self, x):
        return x + self.way(x) if self.residual else self.way(x)


class CrossStage(nn.Module):
    def __init__(self, inputs, outputs, count, residual=True):
        super().__init__()
        self.left = nn.Sequential(
            conv(inputs, outputs // 2, act=nn.SiLU),
            *(Bottleneck(outputs // 2, residual) for _ in range(count)))
        self.right = conv(inputs, outputs // 2, act=nn.SiLU)
        self.join = conv(outputs, outputs, act=nn.SiLU)

    def forward(self, x):
        return self.join(torch.cat([self.left(x), self.right(x)], 1))


class Pools(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = conv(width, width // 2, act=nn.SiLU)
        self.last = conv(width * 2, width, act=nn.SiLU)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(functional.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    def __init__(self, width=32, outputs=255):
        super().__init__()
        w = [width << i for i in range(6)]
        silu = nn.SiLU
        self.stem = nn.Sequential(
            conv(3, w[0], 6, 2, act=silu), conv(w[0], w[1], 3, 2, act=silu),
            CrossStage(w[1], w[1], 1))
        self.stages = nn.ModuleList(
            nn.Sequential(conv(w[i], w[i + 1], 3, 2, act=silu), CrossStage(w[i + 1], w[i + 1], n))
            for i, n in [(1, 2), (2, 3), (3, 1)])
        self.pools = Pools(w[4])
        self.narrow = nn.ModuleList([conv(w[4], w[3], act=silu), conv(w[3], w[2], act=silu)])
        self.up = nn.ModuleList([CrossStage(w[4], w[3], 1, False),
                                 CrossStage(w[3], w[2], 1, False)])
        self.step = nn.ModuleList([conv(w[2], w[2], 3, 2, act=silu),
                                   conv(w[3], w[3], 3, 2, act=silu)])
        self.down = nn.ModuleList([CrossStage(w[3], w[3], 1, False),
                                   CrossStage(w[4], w[4], 1, False)])
        self.heads = nn.ModuleList(nn.Conv2d(w[i], outputs, 1) for i in (2, 3, 4))

    def forward(self, x):
        x = self.stem(x)
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        x, kept = self.pools(x), []
        for narrow, up, beside in zip(self.narrow, self.up, (maps[1], maps[0])):
            kept.append(narrow(x))
            wide = functional.interpolate(kept[-1], scale_factor=2.0, mode="nearest")
            x = up(torch.cat([wide, beside], 1))
        found = [x]
        for step, down, beside in zip(self.step, self.down, reversed(kept)):
            x = down(torch.cat([step(x), beside], 1))
            found.append(x)
        return torch.cat([head(m).flatten(2) for head, m in zip(self.heads, found)], 2)


# --- GhostNet: half of the channels by cheap depthwise windows of the others ---

class Excite(nn.Module):
    def __init__(self, width, least):
        super().__init__()
        self.down, self.up = nn.Conv2d(width, least, 1), nn.Conv2d(least, width, 1)

    def forward(self, x):
        scale = self.up(torch.relu(self.down(x.mean((2, 3), keepdim=True))))
        return x * functional.hardsigmoid(scale)


class Ghost(nn.Module):
    def __init__(self, inputs, outputs, act=nn.ReLU):
        super().__init__()
        half = (outputs + 1) // 2
        self.outputs = outputs
        self.first = conv(inputs, half, act=act)
        self.cheap = conv(half, half, 3, groups=half, act=act)

    def forward(self, x):
        x = self.first(x)
        return torch.cat([x, self.cheap(x)], 1)[:, :self.outputs]


class GhostBlock(nn.Module):
    def __init__(self, inputs, size, middle, outputs, excite, stride):
        super().__init__()
        parts = [Ghost(inputs, middle)]
        if stride > 1:
            parts.append(conv(middle, middle, size, stride, middle, None))
        if excite:
            parts.append(Excite(middle, (middle // 4 + 3) // 4 * 4))
        self.way = nn.Sequential(*parts, Ghost(middle, outputs, None))
        self.beside = nn.Identity() if stride == 1 and inputs == outputs else nn.Sequential(
            conv(inputs, inputs, size, stride, inputs, None), conv(inputs, outputs, act=None))

    def forward(self, x):
        return self.way(x) + self.beside(x)


GHOST = [(3, 16, 16, 0, 1), (3, 48, 24, 0, 2), (3, 72, 24, 0, 1), (5, 72, 40, 1, 2),
         (5, 120, 40, 1, 1), (3, 240, 80, 0, 2), (3, 200, 80, 0, 1), (3, 184, 80, 0, 1),
         (3, 184, 80, 0, 1), (3, 480, 112, 1, 1), (3, 672, 112, 1, 1), (5, 672, 160, 1, 2),
         (5, 960, 160, 0, 1), (5, 960, 160, 1, 1), (5, 960, 160, 0, 1), (5, 960, 160, 1, 1)]


def ghostnet():
    parts, width = [conv(3, 16, 3, 2)], 16
    for size, middle, outputs, excite, stride in GHOST:
        parts.append(GhostBlock(width, size, middle, outputs, excite, stride))
        width = outputs
    return Classifier(nn.Sequential(*parts, conv(width, 960)), 960)


# --- HRNet: resolutions side by side, each summed of all again and again ---

class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.way = nn.Sequential(conv(width, width, 3), conv(width, width, 3, act=None))

    def forward(self, x):
        return torch.relu(x + self.way(x))


class Exchange(nn.Module):
    def __init__(self, widths, blocks=2):
        super().__init__()
        self.own = nn.ModuleList(nn.Sequential(*(Residual(w) for _ in range(blocks)))
                                 for w in widths)
        self.ways = nn.ModuleList(
            nn.ModuleList(self.way(i, o, widths) for i in range(len(widths)))
            for o in range(len(widths)))

    @staticmethod
    def way(i, o, widths):
        if i == o:
            return nn.Identity()
        if i > o:
            return nn.Sequential(conv(widths[i], widths[o], act=None),
                                 nn.Upsample(scale_factor=2.0 ** (i - o), mode="nearest"))
        steps = [conv(widths[i], widths[i], 3, 2) for _ in range(o - i - 1)]
        return nn.Sequential(*steps, conv(widths[i], widths[o], 3, 2, act=None))

    def forward(self, maps):
        maps = [own(x) for own, x in zip(self.own, maps)]
        return [torch.relu(sum(way(x) for way, x in zip(ways, maps))) for ways in self.ways]


class HRNet(nn.Module):
    def __init__(self, width=18, classes=19):
        super().__init__()
        widths = [width << i for i in range(4)]
        self.stem = nn.Sequential(conv(3, 64, 3, 2), conv(64, 64, 3, 2), Residual(64))
        self.begin = nn.ModuleList([conv(64, widths[0], 3), conv(64, widths[1], 3, 2)])
        self.steps = nn.ModuleList(conv(widths[i], widths[i + 1], 3, 2) for i in (1, 2))
        self.stages = nn.ModuleList(Exchange(widths[:n]) for n in (2, 3, 4))
        self.head = nn.Sequential(conv(sum(widths), sum(widths)),
                                  nn.Conv2d(sum(widths), classes, 1))

    def forward(self, x):
        x = self.stem(x)
        maps = [begin(x) for begin in self.begin]
        for i, stage in enumerate(self.stages):
            maps = stage(maps if i == 0 else [*maps, self.steps[i - 1](maps[-1])])
        size = maps[0].shape[2:]
        maps = maps[:1] + [functional.interpolate(x, size=size, mode="bilinear",
                                                  align_corners=False) for x in maps[1:]]
        return self.head(torch.cat(maps, 1))


# --- ResNeSt: a softmax over the parts of each group says how much each counts ---

class SplitAttention(nn.Module):
    def __init__(self, width, parts=2):
        super().__init__()
        self.parts, self.width = parts, width
        self.split = conv(width, width * parts, 3, groups=parts)
        self.down = conv(width, max(width * parts // 4, 32))
        self.up = nn.Conv2d(max(width * parts // 4, 32), width * parts, 1)

    def forward(self, x):
        x = self.split(x).unflatten(1, (self.parts, self.width))
        scale = self.up(self.down(x.sum(1).mean((2, 3), keepdim=True)))
        scale = scale.unflatten(1, (self.parts, self.width)).softmax(1)
        return (x * scale).sum(1)


class SplitBlock(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.way = nn.Sequential(
            conv(inputs, width), SplitAttention(width),
            *([nn.AvgPool2d(3, stride, 1)] if stride > 1 else []),
            conv(width, 4 * width, act=None))
        self.beside = nn.Identity() if inputs == 4 * width else nn.Sequential(
            *([nn.AvgPool2d(stride, stride, ceil_mode=True)] if stride > 1 else []),
            conv(inputs, 4 * width, act=None))

    def forward(self, x):
        return torch.relu(self.way(x) + self.beside(x))


def resnest(counts=(3, 4, 6, 3)):
    parts = [conv(3, 32, 3, 2), conv(32, 32, 3), conv(32, 64, 3), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, count in enumerate(counts):
        for block in range(count):
            width = 64 << stage
            parts.append(SplitBlock(inputs, width, 2 if stage and not block else 1))
            inputs = 4 * width
    return Classifier(nn.Sequential(*parts), inputs)


# --- MixNet: windows of several sizes, each over a part of the channels ---

class MixedWindows(nn.Module):
    def __init__(self, width, sizes, stride):
        super().__init__()
        parts = [width // len(sizes)] * len(sizes)
        parts[0] += width - sum(parts)
        self.parts = parts
        self.ways = nn.ModuleList(nn.Conv2d(p, p, s, stride, s // 2, groups=p, bias=False)
                                  for p, s in zip(parts, sizes))
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        parts = zip(self.ways, x.split(self.parts, 1))
        return functional.silu(self.norm(torch.cat([way(part) for way, part in parts], 1)))


class MixedBlock(nn.Module):
    def __init__(self, inputs, outputs, sizes, wider, stride):
        super().__init__()
        middle = inputs * wider
        self.way = nn.Sequential(
            conv(inputs, middle, act=nn.SiLU), MixedWindows(middle, sizes, stride),
            Excite(middle, max(inputs // 2, 4)), conv(middle, outputs, act=None))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.way(x) if self.residual else self.way(x)


MIXED = [(24, (3,), 3, 2, 2), (40, (3, 5, 7), 6, 2, 4), (80, (3, 5, 7), 6, 2, 3),
         (120, (3, 5, 7), 6, 1, 3), (200, (3, 5, 7, 9), 6, 2, 3)]


def mixnet():
    parts, inputs = [conv(3, 16, 3, 2, act=nn.SiLU)], 16
    for outputs, sizes, wider, stride, count in MIXED:
        for block in range(count):
            parts.append(MixedBlock(inputs, outputs, sizes, wider, 1 if block else stride))
            inputs = outputs
    return Classifier(nn.Sequential(*parts, conv(inputs, 1536, act=nn.SiLU)), 1536)


NETWORKS = {"unet": UNet, "yolo_s": Yolo, "ghostnet": ghostnet, "hrnet_w18": HRNet,
            "resnest50": resnest, "mixnet_s": mixnet}
