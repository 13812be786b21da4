"""The definitions, in plain Python loops over floats: what the tensor code is checked against."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Matrix = Sequence[Sequence[float]]
Pairs = set[tuple[int, int]]


def distance(s: float) -> float:
    return math.sqrt(max(0.0, 2 - 2 * s))


def triplets(labels: Sequence[int], excluded: Pairs) -> list[tuple[int, int, int]]:
    n = len(labels)
    return [
        (a, p, k)
        for a in range(n)
        for p in range(n)
        if p != a and labels[p] == labels[a]
        for k in range(n)
        if labels[k] != labels[a] and (a, k) not in excluded
    ]


def pairs_of_triplets(
    s: Matrix, labels: Sequence[int], excluded: Pairs, keep: Callable[[float, float], bool]
) -> tuple[Pairs, Pairs]:
    positives, negatives = set(), set()
    for a, p, k in triplets(labels, excluded):
        if keep(distance(s[a][p]), distance(s[a][k])):
            positives.add((a, p))
            negatives.add((a, k))
    return positives, negatives


def hard(s: Matrix, labels: Sequence[int], excluded: Pairs, margin: float) -> tuple[Pairs, Pairs]:
    return pairs_of_triplets(s, labels, excluded, lambda d_ap, d_an: d_an <= d_ap + margin)


def semi_hard(s: Matrix, labels: Sequence[int], excluded: Pairs, margin: float) -> tuple[Pairs, Pairs]:
    return pairs_of_triplets(s, labels, excluded, lambda d_ap, d_an: d_ap < d_an <= d_ap + margin)


def multi_similarity_mining(s: Matrix, labels: Sequence[int], excluded: Pairs, margin: float) -> tuple[Pairs, Pairs]:
    positives, negatives = set(), set()
    for a, p, k in triplets(labels, excluded):
        # a pair is kept when some pair of the other kind makes it hard: the hardest does if any does
        if s[a][p] - margin < s[a][k]:
            positives.add((a, p))
        if s[a][k] + margin > s[a][p]:
            negatives.add((a, k))
    return positives, negatives


def _rows(pairs: Pairs, a: int) -> list[int]:
    return sorted(j for i, j in pairs if i == a)


def multi_similarity(
    s: Matrix, positives: Pairs, negatives: Pairs, positive_scale: float, negative_scale: float, offset: float
) -> list[float]:
    values = []
    for a in range(len(s)):
        pull = sum(math.exp(-positive_scale * (s[a][p] - offset)) for p in _rows(positives, a))
        push = sum(math.exp(negative_scale * (s[a][k] - offset)) for k in _rows(negatives, a))
        values.append(math.log(1 + pull) / positive_scale + math.log(1 + push) / negative_scale)
    return values


def info_nce(s: Matrix, positives: Pairs, negatives: Pairs, temperature: float) -> list[float]:
    values = []
    for a in range(len(s)):
        others = sum(math.exp(s[a][k] / temperature) for k in _rows(negatives, a))
        terms = []
        for p in _rows(positives, a):
            own = math.exp(s[a][p] / temperature)
            terms.append(-math.log(own / (own + others)))
        values.append(sum(terms) / len(terms) if terms else 0.0)
    return values


def nca(s: Matrix, positives: Pairs, negatives: Pairs, distance_scale: float) -> list[float]:
    values = []
    for a in range(len(s)):
        near = sum(math.exp(-distance_scale * distance(s[a][p]) ** 2) for p in _rows(positives, a))
        rest = sum(math.exp(-distance_scale * distance(s[a][k]) ** 2) for k in _rows(negatives, a))
        values.append(-math.log(near / (near + rest)) if near else 0.0)
    return values


def circle(s: Matrix, positives: Pairs, negatives: Pairs, margin: float, scale: float) -> list[float]:
    return circle_with_weights(s, s, positives, negatives, margin, scale)


def circle_with_weights(
    s: Matrix, fixed: Matrix, positives: Pairs, negatives: Pairs, margin: float, scale: float
) -> list[float]:
    values = []
    for a in range(len(s)):
        pull = sum(
            math.exp(-scale * max(0.0, 1 + margin - fixed[a][p]) * (s[a][p] - (1 - margin)))
            for p in _rows(positives, a)
        )
        push = sum(math.exp(scale * max(0.0, fixed[a][k] + margin) * (s[a][k] - margin)) for k in _rows(negatives, a))
        values.append(math.log(1 + pull * push))
    return values


def triplet(s: Matrix, positives: Pairs, negatives: Pairs, margin: float) -> list[float]:
    values = []
    for a in range(len(s)):
        terms = [
            max(0.0, distance(s[a][p]) - distance(s[a][k]) + margin)
            for p in _rows(positives, a)
            for k in _rows(negatives, a)
        ]
        values.append(sum(terms) / len(terms) if terms else 0.0)
    return values


def lifted_structure(s: Matrix, positives: Pairs, negatives: Pairs, margin: float) -> list[float]:
    values = []
    for a in range(len(s)):
        terms = []
        for p in _rows(positives, a):
            total = sum(math.exp(margin - distance(s[end][k])) for end in (a, p) for k in _rows(negatives, end))
            violation = distance(s[a][p]) + math.log(total) if total else -math.inf
            terms.append(max(0.0, violation) ** 2 / 2)
        values.append(sum(terms) / len(terms) if terms else 0.0)
    return values


def cosine(s: Matrix, positives: Pairs, negatives: Pairs, margin: float) -> list[float]:
    values = []
    for a in range(len(s)):
        pull = [1 - s[a][p] for p in _rows(positives, a)]
        push = [max(0.0, s[a][k] - margin) for k in _rows(negatives, a)]
        values.append((sum(pull) / len(pull) if pull else 0.0) + (sum(push) / len(push) if push else 0.0))
    return values
