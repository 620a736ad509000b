"""What is received on a floor of each of its transmitters, and where it was measured."""

from dataclasses import dataclass

import numpy as np

from karat.demo.floors import SIZE, Bools, Doubles, Floor, Rng
from karat.demo.walks import Place, anywhere, away, connected, observed
from karat.kernels.distance import blurred, to_nearest

RANGE = (-186.0, -47.0)
"""dBm: nothing, and what a transmitter sends."""
TRANSMITTERS = 3
_DECAY = 2.6  # received power falls with this power of the distance
_WALLS, _INDOORS = 32.0, 40.0  # the most that walls on the way, and a building around the receiver, take, in dB
_SHADOWING = 3.0  # the standard deviation of what else stands around, in dB
_RAY = 256  # steps of a ray


@dataclass(frozen=True, eq=False)
class RadioMap:
    """The truth of one transmitter."""

    name: str
    floor: Floor
    transmitter: Place
    """Row, column."""
    received: Doubles
    """(H, W) dBm."""
    observed: Bools
    """(H, W) where it was measured."""

    @property
    def distance(self) -> Doubles:
        """(H, W) metres to the nearest measurement."""
        return to_nearest(self.observed)


def radio_maps(floor: Floor, seed: int) -> list[RadioMap]:
    """One map a transmitter, each measured on a walk of its own."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *floor.name.encode()])))
    indoors = np.where(floor.building, _INDOORS * (1 - np.exp(-floor.depth / 4)), 0.0)
    maps = []
    for number, place in enumerate(_places(floor, rng)):
        received = sixty_fourths(np.clip(_strength(floor, place, rng) - indoors, *RANGE))
        seen = observed(~floor.building, rng)
        maps.append(RadioMap(f"{floor.name}_{number}", floor, place, received, seen))
    return maps


def _strength(floor: Floor, place: Place, rng: Rng) -> Doubles:
    """Path loss by the logarithm of the distance, walls on the straight way, and smooth shadowing.

    The more walls take, the more arrives on other ways around them.
    """
    lost = 10 * _DECAY * np.log10(away(place).clip(1))
    lost += blurred(_WALLS * (1 - np.exp(-crossed(floor.loss, place) / _WALLS)), 1.2)
    return np.asarray(RANGE[1] - lost + _SHADOWING * grain(rng, 7.0))


def crossed(loss: Doubles, place: Place) -> Doubles:
    """The loss (H, W) on the straight way from a place to every pixel, in 256 steps of equal length."""
    rows, columns = (np.arange(side) - at for side, at in zip(loss.shape, place, strict=True))
    total = np.zeros(loss.shape)
    for share in (np.arange(_RAY) + 0.5) / _RAY:
        down, across = (np.rint(at + share * far).astype(int) for at, far in zip(place, (rows, columns), strict=True))
        total += loss[np.ix_(down, across)]
    return total * away(place) / _RAY


def grain(rng: Rng, size: float) -> Doubles:
    """Normal noise (H, W) of variance 1 at every pixel, smooth over about `size` pixels."""
    margin = int(4 * size + 0.5)
    noise = blurred(rng.normal(size=(SIZE + 2 * margin, SIZE + 2 * margin)), size)
    impulse = np.zeros((2 * margin + 1, 2 * margin + 1))
    impulse[margin, margin] = 1.0
    return np.asarray(noise[margin:-margin, margin:-margin] / np.linalg.norm(blurred(impulse, size)))


def sixty_fourths(values: Doubles) -> Doubles:
    """Rounded, so that what differs in its last bit from one processor to the next does not."""
    return np.rint(values * 64) / 64


def _places(floor: Floor, rng: Rng) -> list[Place]:
    """Where the transmitters stand: in the open, apart from each other, the border and walls."""
    ground = np.zeros((SIZE, SIZE), bool)
    ground[20:-20, 20:-20] = (connected(~floor.building) & (to_nearest(floor.building) > 2))[20:-20, 20:-20]
    places: list[Place] = []
    while len(places) < TRANSMITTERS:
        places.append(anywhere(ground, rng))
        ground &= away(places[-1]) > 40
    return places
