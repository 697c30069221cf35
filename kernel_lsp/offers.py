"""Candidates that may be offered, by the hash of the unit they were made for.

An offer belongs to a unit *hash*, not to a place: it goes when the unit is edited and comes back
when the edit is undone, whatever happened to the lines in between.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from search_engine.domain.candidate import Candidate
from search_engine.domain.run import Evidence

KEPT = 60
"""Offers kept in memory; each holds a text of a whole file, and the archive has them all."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate with its evidence. ``original`` is the whole file that it was made from."""

    run_id: str
    name: str
    """Qualified name of the kernel."""
    path: str
    unit_hash: str
    candidate_hash: str
    """Hash of the unit in the candidate's text."""
    original: str
    candidate: Candidate
    evidence: Evidence
    verified: bool

    @property
    def id(self) -> str:
        """The candidate's content hash."""
        return self.candidate.id

    @property
    def timed(self) -> bool:
        """Only a timed offer is ever called faster."""
        return self.evidence.speedup is not None

    @property
    def offered(self) -> bool:
        """A timed candidate is offered once verified; an untimed one says that it was not timed."""
        return self.verified or not self.timed

    @property
    def factor(self) -> str:
        """``1.82x``, or ``not timed``."""
        speedup = self.evidence.speedup
        return f"{speedup.value:.2f}x" if speedup else "not timed"

    @property
    def label(self) -> str:
        """``1.82x rewrite``, or ``CPU-checked rewrite (not timed)``: a noun for titles."""
        return f"{self.factor} rewrite" if self.timed else "CPU-checked rewrite (not timed)"

    @property
    def model_made(self) -> bool:
        """True if the text came from a language model."""
        return "model" in self.candidate.proposer


@dataclass(slots=True)
class OfferBook:
    """All offers of this session, and those read from the archive."""

    _offers: OrderedDict[tuple[str, str], Offer] = field(
        default_factory=OrderedDict[tuple[str, str], Offer]
    )

    def add(self, offer: Offer) -> None:
        """Keep ``offer``; a later one for the same unit and candidate replaces it."""
        key = (offer.unit_hash, offer.id)
        known = self._offers.get(key)
        if known is not None and known.verified and not offer.verified:
            return
        self._offers[key] = offer
        self._offers.move_to_end(key)
        while len(self._offers) > KEPT:
            self._offers.popitem(last=False)

    def find(self, run_id: str, candidate_id: str) -> Offer | None:
        """The offer of a run."""
        for offer in self._offers.values():
            if offer.id == candidate_id and offer.run_id == run_id:
                return offer
        return None

    def best(self, unit_hash: str) -> Offer | None:
        """The fastest verified offer for a unit."""
        timed = [o for o in self._for(unit_hash) if o.timed and o.offered]
        return max(timed, key=_value, default=None)

    def untimed(self, unit_hash: str) -> tuple[Offer, ...]:
        """Offers that were checked on the CPU interpreter only, newest first.

        Each resulting unit once: the archive and a run in another copy of the file find the same
        rewrite in texts that differ elsewhere. What was timed as well is not repeated here.
        """
        offers = self._for(unit_hash)
        seen = {_result(offer) for offer in offers if offer.timed and offer.offered}
        found: list[Offer] = []
        for offer in reversed(offers):
            if not offer.timed and _result(offer) not in seen:
                seen.add(_result(offer))
                found.append(offer)
        return tuple(found)

    def applied(self, unit_hash: str) -> Offer | None:
        """The newest offer whose candidate *is* the present unit."""
        found = [o for o in self._offers.values() if o.candidate_hash == unit_hash]
        return found[-1] if found else None

    def stale(self, name: str, path: str, unit_hash: str) -> Offer | None:
        """The best verified offer for another form of this kernel."""
        others = [
            o
            for o in self._offers.values()
            if (o.name, o.path) == (name, path)
            and unit_hash not in (o.unit_hash, o.candidate_hash)
            and o.offered
        ]
        return max(others, key=_value, default=None)

    def __len__(self) -> int:
        return len(self._offers)

    def _for(self, unit_hash: str) -> list[Offer]:
        return [
            o
            for (of, _), o in self._offers.items()
            if of == unit_hash and o.candidate_hash != unit_hash
        ]


def _result(offer: Offer) -> str:
    """The unit that applying gives; an empty hash is that of a text whose unit is gone."""
    return offer.candidate_hash or offer.id


def _value(offer: Offer) -> float:
    return offer.evidence.speedup.value if offer.evidence.speedup else 0.0
