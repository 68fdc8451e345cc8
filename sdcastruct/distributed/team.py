"""The workers of a run: which holds which part, and what happens when one is lost.

A worker is lost when a call to it fails, because its process or its connection has died, or when it
does not answer for `timeout` seconds. Its parts are loaded anew elsewhere: on a worker that holds
nothing, such as one that a nanny has just restarted, or else on the one that holds the least.
"""

import asyncio
import os
import time
import uuid

import numpy as np

from sdcastruct.distributed.block import Block
from sdcastruct.distributed.changes import Changes
from sdcastruct.distributed.cluster import addresses

MOST_LOSSES = 3  # in a row, of one part
RESTART_SECONDS = 5.0  # that a nanny may take, before a worker gets a second part
LOST = object()


class Member:
    """A part, the actor that holds it, and its last answer.

    Attributes
    ----------
    u : array
        u_k on the support of the part.
    entropy, gap : float
        See `Sums`.
    answered : bool
        Whether the last answer of the block has arrived; else it must send all of u_k.
    informed : bool
        Whether the block knows the weights that were last sent; else it must get all of them.
    """

    def __init__(self, number, part):
        self.number, self.part = number, part
        self.future = self.actor = self.address = self.support = self.u = None
        self.entropy = self.gap = 0.0
        self.answered = self.informed = False

    def describe(self, description):
        """Take the answer to `Block.load`."""
        self.address, self.support = description.address, description.support.astype(np.intp)
        self.u = np.empty(self.support.size)
        self.take(description.sums)
        self.informed = False

    def take(self, sums):
        """Take new sums."""
        sums.u.write_to(self.u)
        self.entropy, self.gap = sums.entropy, sums.gap

    def news(self, w, changed):
        """Return what the block has to know of the weights w, and where they have changed."""
        values, informed = w.take(self.support), self.informed
        self.informed = False  # until it has answered
        return Changes.at(changed.take(self.support), values) if informed else Changes(None, values)


class Team:
    """The members of a run, and how to call them.

    Parameters
    ----------
    client : distributed.Client
    parts : list
    timeout : float
        Seconds to wait for an answer.
    load : callable
        ``load(number) -> arguments`` of `Block.load` behind the part.
    """

    def __init__(self, client, parts, timeout, load):
        self.client, self.timeout, self.load = client, timeout, load
        self.members = [Member(number, part) for number, part in enumerate(parts)]
        self.given_up = set()
        self.n_losses = 0
        self._start(self.members)

    def ask(self, method, arguments, again=False):
        """Call a method of all blocks; return their answers in order.

        Where a worker is lost, its part is loaded anew, and the answer is LOST: the member then has
        the sums of its new block. With `again` the new block is asked again.

        Parameters
        ----------
        method : str
        arguments : callable
            ``arguments(member) -> tuple``
        again : bool
        """
        answers = dict.fromkeys(self.members)
        asked = self.members
        while asked:
            answers.update(self._call(asked, method, arguments))
            lost = [member for member in asked if answers[member] is LOST]
            self._start(lost)
            asked = lost if again else []
        return [answers[member] for member in self.members]

    def _start(self, members):
        """Load the parts of members on workers, until all are there."""
        losses = 0
        while members:
            if losses == MOST_LOSSES:
                raise RuntimeError(
                    f"partition {members[0].number} was lost {losses} times in a row while it was "
                    "loaded: the workers may have too little memory, or timeout="
                    f"{self.timeout!r} seconds may be too short"
                )
            placed = [member for member in members if self._place(member)]
            answers = self._call(
                placed, "load", lambda member: (member.part, os.getpid(), *self.load(member.number))
            )
            loaded = [member for member in placed if answers[member] is not LOST]
            for member in loaded:
                member.describe(answers[member])
            members = [member for member in members if member not in loaded]
            losses += 1

    def _place(self, member):
        """Make an actor for a part; return whether that went well."""
        member.actor = member.future = member.address = None
        member.address = self._choose()
        member.future = self.client.submit(
            Block,
            key=f"sdcastruct-block-{member.number}-{uuid.uuid4().hex[:8]}",
            actor=True,
            workers=[member.address],
            allow_other_workers=True,
        )
        try:
            member.actor = member.future.result(timeout=self.timeout)
        except Exception:  # its worker has died in this moment
            self.n_losses += 1
            return False
        return True

    def _choose(self):
        """Return the address of the worker that holds the fewest parts.

        After a loss wait a moment for one that holds none.
        """
        started = time.monotonic()
        while True:
            held = {a: 0 for a in addresses(self.client) if a not in self.given_up}
            for member in self.members:
                if member.address in held:
                    held[member.address] += 1
            waited = time.monotonic() - started
            patient = self.n_losses > 0 and waited < RESTART_SECONDS
            if held and (min(held.values()) == 0 or not patient):
                return min(held, key=held.get)
            if not held and waited > self.timeout:
                raise RuntimeError(
                    f"no worker is left after {self.n_losses} were lost, and none has come within "
                    f"timeout={self.timeout!r} seconds"
                )
            time.sleep(0.05)

    def _call(self, members, method, arguments):
        """Call a method of some blocks; return {member: answer or LOST}.

        Dask's calls of actors are reference cycles, which hold what was sent until Python collects
        them. So messages are emptied as soon as they are answered: else the weights of many rounds
        would pile up.
        """
        messages, futures, answers = {}, {}, {}
        for member in members:
            try:
                call = member.actor.call
                messages[member] = list(arguments(member))
                futures[member] = call(method, messages[member])
            except RuntimeError:  # Dask knows already that its worker is lost
                answers[member] = self._lose()
            member.answered = False
        until = time.monotonic() + self.timeout
        for member, future in futures.items():
            try:
                left = None if future.done() else max(0.0, until - time.monotonic())
                answer, error = future.result(timeout=left)
            except (TimeoutError, asyncio.TimeoutError):
                self.given_up.add(member.address)
                answers[member] = self._lose()
                continue
            except Exception:
                answers[member] = self._lose()
                continue
            messages[member].clear()
            if error is not None:
                raise _named(member, error)
            answers[member] = answer
            member.answered = True
        return answers

    def _lose(self):
        self.n_losses += 1
        return LOST


def _named(member, error):
    """Return an error of a block that says which samples it is about."""
    if type(error) in (ValueError, TypeError):
        return type(error)(f"partition {member.number} ({member.part.name}): {error}")
    return error
