"""What `onoma.encoders.short_attention` runs on a GPU, in Triton's language: each program has one name and one head.

A name's tokens stand in a tile, whose other places are passed over. What the kernels are given, and its shapes, is said
there; ``n_rows`` and ``layer`` are not compiled for their values.
"""

import triton
import triton.language as tl


@triton.jit
def _mixed(number):
    """Bits of an integer in disorder (Chris Wellons' "lowbias32")."""
    number = (number ^ (number >> 16)) * 0x7FEB352D
    number = (number ^ (number >> 15)) * 0x846CA68B
    return number ^ (number >> 16)


@triton.jit
def _kept(seed, layer, dropout, name, head, HEADS: tl.constexpr, TOKENS: tl.constexpr):
    """Which weights of a name and head dropout keeps: independent numbers for each pair of tokens."""
    key = tl.randint(tl.load(seed) + layer, name * HEADS + head).to(tl.uint32, bitcast=True)
    places = tl.arange(0, TOKENS)
    place = (places[:, None] * TOKENS + places[None, :]).to(tl.uint32)
    drawn = _mixed(_mixed(place * 0x9E3779B9 + key) ^ key) >> 8
    return drawn.to(tl.float32) * (1.0 / 16777216.0) >= dropout


@triton.jit
def _rows(first, length, row_width, column, WIDTH: tl.constexpr, TILE_WIDTH: tl.constexpr, TOKENS: tl.constexpr):
    """How far from the start of a tensor the numbers of a name and head lie, and which of a tile's places have any."""
    places, columns = tl.arange(0, TOKENS), tl.arange(0, TILE_WIDTH)
    begin = (first + places).to(tl.int64) * row_width + column
    return begin[:, None] + columns[None, :], (places[:, None] < length) & (columns[None, :] < WIDTH)


@triton.jit
def _tile(
    name, head, first, length,
    FIRST_ONLY: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr, TILE_WIDTH: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    """Where queries, keys and what is gathered lie in their tensors (values after keys), and which places have any."""
    states: tl.constexpr = HEADS * WIDTH
    column = head * WIDTH
    if FIRST_ONLY:
        at_query, asks = _rows(name, 1, states, column, WIDTH, TILE_WIDTH, TOKENS)
        at_key, has = _rows(first, length, 2 * states, column, WIDTH, TILE_WIDTH, TOKENS)
        at_gathered = at_query
    else:
        at_query, asks = _rows(first, length, 3 * states, column, WIDTH, TILE_WIDTH, TOKENS)
        at_key, has = at_query + states, asks
        at_gathered, _ = _rows(first, length, states, column, WIDTH, TILE_WIDTH, TOKENS)
    return at_query, at_key, at_gathered, asks, has


@triton.jit
def _clear(start, first, end, row_width, column, WIDTH: tl.constexpr, TILE_WIDTH: tl.constexpr):
    """Zeros in the rows that belong to no name."""
    row = first
    while row < end:
        at, has = _rows(row, end - row, row_width, column, WIDTH, TILE_WIDTH, 16)
        tl.store(start + at, tl.zeros([16, TILE_WIDTH], start.dtype.element_ty), has)
        row += 16


@triton.jit
def _weights(query, key, scale, length, TOKENS: tl.constexpr):
    scores = tl.dot(query, tl.trans(key)) * scale
    scores = tl.where(tl.arange(0, TOKENS)[None, :] < length, scores, float("-inf"))
    raised = tl.exp(scores - tl.max(scores, 1)[:, None])
    return raised / tl.sum(raised, 1)[:, None]


@triton.jit
def _forward_of_name(
    query, projected, gathered, seed, layer, dropout, scale, name, head, first, length,
    FIRST_ONLY: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr, TILE_WIDTH: tl.constexpr,
    DROPS: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    states: tl.constexpr = HEADS * WIDTH
    at_query, at_key, at_gathered, asks, has = _tile(
        name, head, first, length, FIRST_ONLY, HEADS, WIDTH, TILE_WIDTH, TOKENS
    )
    q = tl.load(query + at_query, asks, 0.0)
    k = tl.load(projected + at_key, has, 0.0)
    v = tl.load(projected + at_key + states, has, 0.0)
    weights = _weights(q, k, scale, length, TOKENS)
    if DROPS:
        kept = _kept(seed, layer, dropout, name, head, HEADS, TOKENS)
        weights = tl.where(kept, weights / (1.0 - dropout), 0.0)
    tl.store(gathered + at_gathered, tl.dot(weights.to(v.dtype), v).to(v.dtype), asks)


@triton.jit
def _backward_of_name(
    query, projected, gradient, of_query, of_projected, seed, layer, dropout, scale, name, head, first, length,
    FIRST_ONLY: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr, TILE_WIDTH: tl.constexpr,
    DROPS: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    states: tl.constexpr = HEADS * WIDTH
    at_query, at_key, at_gathered, asks, has = _tile(
        name, head, first, length, FIRST_ONLY, HEADS, WIDTH, TILE_WIDTH, TOKENS
    )
    q = tl.load(query + at_query, asks, 0.0)
    k = tl.load(projected + at_key, has, 0.0)
    v = tl.load(projected + at_key + states, has, 0.0)
    pull = tl.load(gradient + at_gathered, asks, 0.0)
    weights = _weights(q, k, scale, length, TOKENS)
    of_weights = tl.dot(pull, tl.trans(v))
    dropped = weights
    if DROPS:
        kept = _kept(seed, layer, dropout, name, head, HEADS, TOKENS)
        dropped = tl.where(kept, weights / (1.0 - dropout), 0.0)
        of_weights = tl.where(kept, of_weights / (1.0 - dropout), 0.0)
    of_scores = weights * (of_weights - tl.sum(weights * of_weights, 1)[:, None]) * scale
    of_scores = of_scores.to(q.dtype)
    tl.store(of_query + at_query, tl.dot(of_scores, k).to(q.dtype), asks)
    tl.store(of_projected + at_key, tl.dot(tl.trans(of_scores), q).to(q.dtype), has)
    tl.store(of_projected + at_key + states, tl.dot(tl.trans(dropped.to(q.dtype)), pull).to(q.dtype), has)


@triton.jit(do_not_specialize=["n_rows", "layer"])
def forward(
    query, projected, gathered, borders, n_rows, seed, layer, dropout, scale,
    FIRST_ONLY: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr, TILE_WIDTH: tl.constexpr,
    LONGEST: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """What tokens gather."""
    name, head = tl.program_id(0), tl.program_id(1)
    first = tl.load(borders + name)
    length = tl.load(borders + name + 1) - first
    if LONGEST == 16 or length <= 16:
        _forward_of_name(
            query, projected, gathered, seed, layer, dropout, scale, name, head, first, length,
            FIRST_ONLY, HEADS, WIDTH, TILE_WIDTH, DROPS, 16,
        )  # fmt: skip
    else:
        _forward_of_name(
            query, projected, gathered, seed, layer, dropout, scale, name, head, first, length,
            FIRST_ONLY, HEADS, WIDTH, TILE_WIDTH, DROPS, LONGEST,
        )  # fmt: skip
    if not FIRST_ONLY and name == tl.num_programs(0) - 1:
        _clear(gathered, first + length, n_rows, HEADS * WIDTH, head * WIDTH, WIDTH, TILE_WIDTH)


@triton.jit(do_not_specialize=["n_rows", "layer"])
def backward(
    query, projected, gradient, of_query, of_projected, borders, n_rows, seed, layer, dropout, scale,
    FIRST_ONLY: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr, TILE_WIDTH: tl.constexpr,
    LONGEST: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """The gradients of queries, keys and values."""
    name, head = tl.program_id(0), tl.program_id(1)
    first = tl.load(borders + name)
    length = tl.load(borders + name + 1) - first
    if LONGEST == 16 or length <= 16:
        _backward_of_name(
            query, projected, gradient, of_query, of_projected, seed, layer, dropout, scale, name, head, first, length,
            FIRST_ONLY, HEADS, WIDTH, TILE_WIDTH, DROPS, 16,
        )  # fmt: skip
    else:
        _backward_of_name(
            query, projected, gradient, of_query, of_projected, seed, layer, dropout, scale, name, head, first, length,
            FIRST_ONLY, HEADS, WIDTH, TILE_WIDTH, DROPS, LONGEST,
        )  # fmt: skip
    if name == tl.num_programs(0) - 1:
        parts: tl.constexpr = 2 if FIRST_ONLY else 3
        for part in range(parts):
            column = (part * HEADS + head) * WIDTH
            _clear(of_projected, first + length, n_rows, parts * HEADS * WIDTH, column, WIDTH, TILE_WIDTH)
