"""Every method written out as its formula says, pair by pair, in plain PyTorch. Nothing here uses
the package: slots come from coordinates, and gradients from PyTorch's autograd."""

import itertools
import math

import torch


def _share(delta, sharing, radius):
    """The offset whose row a pair reads; None where a window leaves it out."""
    if sharing == "none" or max(abs(d) for d in delta) <= radius:
        return delta
    if sharing == "window":
        return None
    bucket = []
    for d in delta:
        distance, sign = abs(d), -1 if d < 0 else 1
        if sharing == "direction":
            bucket.append(sign * (radius + 1) if distance > radius else 0)
        elif distance <= radius:
            bucket.append(d)
        else:
            bucket.append(sign * (radius + 1 + int(math.log2(distance // (radius + 1)))))
    return tuple(bucket)


class Pairs:
    """Which token gathers from which, and the rows that the pair reads: slot and key slot."""

    def __init__(self, grid, cls=False, causal=False, encoding="relative", sharing="none",
                 radius=0):
        places = list(itertools.product(*(range(side) for side in grid)))
        first = 1 if cls else 0
        self.tokens = len(places) + first
        self.slot, self.key_slot, self.offset = {}, {}, {}
        if encoding == "absolute":
            for i in range(self.tokens):
                for j in range(i + 1 if causal else self.tokens):
                    self.slot[i, j] = len(self.slot)
            for i, j in self.slot:
                self.key_slot[i, j] = self.slot[i, j] if causal else self.slot[j, i]
            return
        bucket = {}
        for (i, p), (j, q) in itertools.product(enumerate(places), enumerate(places)):
            shared = _share(tuple(a - b for a, b in zip(p, q)), sharing, radius)
            if shared is not None and not (causal and j > i):
                bucket[i, j] = shared
        rows = {offset: row for row, offset in enumerate(sorted(set(bucket.values())))}
        self.offset = {row: offset for offset, row in rows.items()}
        for (i, j), offset in bucket.items():
            reverse = offset if causal else bucket[j, i]
            self.slot[i + first, j + first] = rows[offset]
            self.key_slot[i + first, j + first] = rows[reverse]
        if cls:
            itself = len(rows)
            self.slot[0, 0] = itself
            for t in range(1, self.tokens):
                if not causal:
                    self.slot[0, t] = itself + 1
                self.slot[t, 0] = itself + 2
            for i, j in self.slot:
                self.key_slot.setdefault((i, j), self.slot[i, j])

    @classmethod
    def of_relation(cls, slots, mirror):
        pairs = cls.__new__(cls)
        pairs.tokens, pairs.offset = len(slots), {}
        pairs.slot = {(i, j): s for i, row in enumerate(slots) for j, s in enumerate(row) if s >= 0}
        pairs.key_slot = {pair: mirror[s] for pair, s in pairs.slot.items()}
        return pairs


def _rotate(vector, token, options):
    """Channel d against d + D/2 of each head, by the token's place on one axis of the grid."""
    if options["cls"] and token == 0:
        return vector
    grid = options["grid"]
    place = list(itertools.product(*(range(side) for side in grid)))[token - bool(options["cls"])]
    heads, D = options["heads"], options["dim_head"]
    frequencies = D // 2 // len(grid)
    parts = vector.reshape(-1, heads, 2, D // 2)
    turned = []
    for d in range(D // 2):
        angle = place[d // frequencies] * 10000.0 ** (-(d % frequencies) / frequencies)
        a, b = parts[:, :, 0, d], parts[:, :, 1, d]
        turned.append((a * math.cos(angle) - b * math.sin(angle),
                       a * math.sin(angle) + b * math.cos(angle)))
    return torch.cat([torch.stack([t[half] for t in turned], -1) for half in (0, 1)],
                     -1).reshape(vector.shape)


def _features(slot, pairs, options):
    """What positional attention knows of an offset: squared length, coordinates, class token."""
    axes = len(options["grid"])
    features = torch.zeros(axes + 1 + (3 if options["cls"] else 0), dtype=torch.float64)
    offset = pairs.offset.get(slot)
    if offset is None:
        features[axes + 1 + slot - len(pairs.offset)] = 1
    else:
        features[0] = sum(d * d for d in offset)
        features[1:axes + 1] = torch.tensor(offset, dtype=torch.float64)
    return features


class Literal:
    """One layer: `options` as Attention.options, `w` its parameters by name."""

    def __init__(self, options, w, pairs=None):
        self.o, self.w, self.heads = options, w, options["heads"]
        window = options["method"] == "convolution"
        self.pairs = pairs or Pairs(
            options["grid"], options["cls"], options["causal"], options["encoding"],
            "window" if window else options["sharing"],
            options["kernel_size"] // 2 if window else options["radius"])
        self.rotates = options["rotary"] or options["method"] == "rotary"

    def _seen(self, i):
        if self._has_offsets():
            return [j for j in range(self.pairs.tokens)
                    if (i, j) in self.pairs.slot and not (self.o["causal"] and j > i)]
        return [j for j in range(self.pairs.tokens) if not (self.o["causal"] and j > i)]

    def _has_offsets(self):
        o = self.o
        if o["method"] in ("self_attention_no_pos", "self_attention", "rotary"):
            return False
        relative = o["roles"] != "none"
        return {"translution": relative,
                "alpha_translution": relative and o["relative_dim"] > 0}.get(o["method"], True)

    def _encode(self, f, name, slot):
        weight = self.w[name][slot] if self.w[name].dim() == 3 else self.w[name]
        encoded = f @ weight[:f.shape[-1]]
        if not self.o["qkv_bias"]:
            return encoded
        return encoded + (weight[-1] if len(weight) > f.shape[-1] else self.w[name + "_bias"])

    def _dot(self, a, b):  # [B,W] x [B,W] -> [B,H]
        return (a * b).reshape(-1, self.heads, a.shape[-1] // self.heads).sum(-1)

    def _score(self, x, i, j):
        w, o = self.w, self.o
        slot, key_slot = self.pairs.slot.get((i, j), 0), self.pairs.key_slot.get((i, j), 0)
        score, parts = 0, 0
        if "query" in w:
            q, k = self._encode(x[:, i], "query", slot), self._encode(x[:, j], "key", key_slot)
            if self.rotates:
                score = self._dot(_rotate(q, i, o), _rotate(k, j, o))
            else:
                score = self._dot(q, k)
            if "key_vectors" in w:
                score = score + self._dot(q, w["key_vectors"][slot].expand_as(q))
            parts += 1
        if "query_down" in w:
            q, k = x[:, i] @ w["query_down"], x[:, j] @ w["key_down"]
            q = q @ w["query_offsets"][slot] if "query_offsets" in w else q
            k = k @ w["key_offsets"][key_slot] if "key_offsets" in w else k
            score = score + self._dot(q, k)
            parts += 1
        if parts == 2 and o["mixing"] == "mean":
            score = score / 2
        score = score / math.sqrt(o["dim_head"])
        return score + w["bias"][slot] if "bias" in w else score

    def _value(self, x, i, j):  # [B,W]
        w, slot = self.w, self.pairs.slot.get((i, j), 0)
        value, parts = 0, 0
        if "value" in w:
            value = self._encode(x[:, j], "value", slot)
            parts += 1
        if "value_vectors" in w:
            value = value + w["value_vectors"][slot]
        if "value_down" in w:
            small = x[:, j] @ w["value_down"]
            small = small @ w["value_offsets"][slot] if "value_offsets" in w else small
            # Each head gathers its own part of the small space before all of it is expanded.
            return value, small, parts + 1
        return value, None, parts

    def _weigh(self, attention, value):  # [B,H] x [B,W] -> [B,W]
        width = value.shape[-1] // self.heads
        return attention.repeat_interleave(width, -1) * value

    def _attention(self, x, i, seen):
        a = torch.softmax(torch.stack([self._score(x, i, j) for j in seen]), 0)  # [J,B,H]
        if "gate" not in self.w:
            return a
        features = torch.stack([_features(self.pairs.slot[i, j], self.pairs, self.o) for j in seen])
        position = torch.softmax(features.to(x.dtype) @ self.w["position_weight"], 0)[:, None]
        g = torch.sigmoid(self.w["gate"])
        return (1 - g) * a + g * position

    def _row(self, x, i):
        seen = self._seen(i)
        if self.o["method"] == "convolution":
            out = sum(x[:, j] @ self.w["kernel"][self.pairs.slot[i, j]] for j in seen)
            return out, seen, torch.ones(len(seen), x.shape[0], self.heads, dtype=x.dtype)
        a = self._attention(x, i, seen)
        large, small, parts = 0, 0, 0
        for n, j in enumerate(seen):
            value, low, parts = self._value(x, i, j)
            large = large + (self._weigh(a[n], value) if "value" in self.w else 0)
            small = small + (self._weigh(a[n], low) if low is not None else 0)
        out = large + (small @ self.w["value_up"] if "value_up" in self.w else 0)
        return (out / 2 if parts == 2 and self.o["mixing"] == "mean" else out), seen, a

    def __call__(self, x, rows=None):
        """The layer's output, projected, and its attention map [B,H,Nq,N]."""
        expected = range(self.pairs.tokens) if rows is None else rows.tolist()
        outs, maps = [], []
        for i in expected:
            out, seen, a = self._row(x, i)
            outs.append(out)
            row = torch.zeros(x.shape[0], self.heads, x.shape[1], dtype=x.dtype)
            for n, j in enumerate(seen):
                row[:, :, j] = a[n].detach()
            maps.append(row)
        projected = torch.stack(outs, 1) @ self.w["out.weight"].T + self.w["out.bias"]
        return projected, torch.stack(maps, 2)
