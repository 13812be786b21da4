"""What several threads do together is what one would have done, whoever fails or calls whom."""

from __future__ import annotations

import threading
import time

import faiss
import pytest

from onoma.indexes import threads
from onoma.indexes.threads import on_threads


@pytest.fixture(params=[1, 2, 5])
def n_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(threads, "most_threads", lambda: request.param)
    return int(request.param)


@pytest.mark.usefixtures("n_threads")
@pytest.mark.parametrize("n_items", [0, 1, 2, 40])
def test_each_item_is_done_once_and_answers_stand_in_their_order(n_items: int) -> None:
    done: list[int] = []

    def square(item: int) -> int:
        time.sleep(0.001 * (item % 3))
        done.append(item)
        return item * item

    assert on_threads(square, iter(range(n_items))) == [item * item for item in range(n_items)]
    assert sorted(done) == list(range(n_items))


def test_several_threads_work_and_faiss_starts_no_more_in_them(n_threads: int) -> None:
    before, together = faiss.omp_get_max_threads(), threading.Barrier(2)

    def who(_: int) -> tuple[int, int]:
        if n_threads > 1:
            together.wait(timeout=60)  # which one thread alone would never pass
        return threading.get_ident(), faiss.omp_get_max_threads()

    found = on_threads(who, range(2))
    assert len({thread for thread, _ in found}) == min(n_threads, 2)
    assert n_threads == 1 or {of_faiss for _, of_faiss in found} == {1}
    assert faiss.omp_get_max_threads() == before


@pytest.mark.parametrize("fails_in_caller", [True, False])
def test_what_fails_is_told_whichever_thread_it_was_and_the_next_call_is_whole(
    fails_in_caller: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "most_threads", lambda: 2)
    caller, together = threading.get_ident(), threading.Barrier(2)

    def fail(_: int) -> None:
        together.wait(timeout=60)
        if (threading.get_ident() == caller) == fails_in_caller:
            raise ValueError("no")

    before = faiss.omp_get_max_threads()
    with pytest.raises(ValueError, match="no"):
        on_threads(fail, range(2))
    assert faiss.omp_get_max_threads() == before
    assert on_threads(str, range(3)) == ["0", "1", "2"]


@pytest.mark.usefixtures("n_threads")
def test_a_thread_that_asks_for_others_does_not_wait_for_itself() -> None:
    found = on_threads(lambda item: on_threads(lambda inner: 10 * item + inner, range(4)), range(6))
    assert found == [[10 * item + inner for inner in range(4)] for item in range(6)]
