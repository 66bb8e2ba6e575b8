"""The panel of the key pool's simulation: with or without a pool, and what the device can do before anything is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from PySide6.QtCore import QCoreApplication, Qt

from labconsole.analysis.figures import NO_FIGURE, format_duration, format_number
from labconsole.trial import Parameters, TrialError
from labconsole_keypool.arrivals import arrivals_ns
from labconsole_keypool.choices import ArrivalPattern, KeySource
from labconsole_keypool.simulation_parameters import SimulationParameters
from labconsole_keypool.timing import load_timing
from labconsole_ui.form.editors import ChoiceEditor, Editor
from labconsole_ui.form.spec import FieldSpec
from labconsole_ui.panel import Fact, PanelContext, TrialPanel
from labconsole_ui.segmented import Segment, SegmentedEditor

_ICONS = {KeySource.POOL: "database", KeySource.GENERATED: "key"}
_MOST_COUNTED = 100_000
"""Requests up to which their arrivals are worked out while somebody types: a few ms."""

_translate = QCoreApplication.translate


def make_panel(context: PanelContext) -> KeypoolPanel:
    """The factory that the manifest names."""
    return KeypoolPanel(context)


class KeypoolPanel(TrialPanel):
    """The usual panel; where keys come from is chosen between two cards."""

    def __init__(self, context: PanelContext) -> None:
        def keys(spec: FieldSpec) -> Editor:
            return SegmentedEditor(spec, _segments(), context.theme)

        super().__init__(context, {"keys": keys, "timing": _timing_editor})

    def facts(self, parameters: Parameters) -> list[Fact]:
        """What the device can sign with and without keys, how many there are, and when the last request comes."""
        assert isinstance(parameters, SimulationParameters)
        return [*_device(parameters), *_arrivals(parameters)]


def _device(parameters: SimulationParameters) -> Iterator[Fact]:
    model = parameters.service_model()
    yield Fact(
        _translate("KeypoolPanel", "Signing"),
        _rate(parameters.threads * 1000 / model.sign_ms),
        _translate("KeypoolPanel", "Requests that the device signs when it has keys: threads / Si, the base rate (BR)"),
    )
    yield Fact(
        _translate("KeypoolPanel", "Without keys"),
        _rate(parameters.threads * 1000 / (model.sign_ms + model.key_generation_ms)),
        _translate("KeypoolPanel", "Requests that it signs when it generates a key pair for each: threads / (KG + Si)"),
    )
    if parameters.keys is KeySource.POOL:
        yield Fact(
            _translate("KeypoolPanel", "Keys at the start"),
            format_number(model.keys_at_start + model.store_keys + model.pool_keys),
            _translate("KeypoolPanel", "In the token's RAM and store, and wrapped in the pool outside"),
        )
        yield Fact(
            _translate("KeypoolPanel", "Unwrapping a batch"),
            format_duration(parameters.batch * model.unwrap_ms / 1000),
            _translate("KeypoolPanel", "Time to load a batch of keys from the pool into the token"),
        )


def _arrivals(parameters: SimulationParameters) -> Iterator[Fact]:
    pattern, requests = parameters.arrivals, parameters.requests + parameters.tail_requests
    if pattern is ArrivalPattern.CSV or requests > _MOST_COUNTED:
        return
    name = _translate("KeypoolPanel", "Arrivals")
    try:
        times = arrivals_ns(
            pattern,
            requests=parameters.requests,
            rate=parameters.rate,
            seed=1,
            time_scale=parameters.time_scale,
            tail_requests=parameters.tail_requests,
            tail_rate=parameters.tail_rate,
        )
    except TrialError as error:
        yield Fact(name, NO_FIGURE, str(error))
        return
    yield Fact(
        name,
        _translate("KeypoolPanel", "{requests} in {duration}").format(
            requests=f"{len(times):,}", duration=format_duration(float(times[-1]) / 1e9)
        ),
        _translate(
            "KeypoolPanel", "From the first request to the last, in virtual time: the run itself takes a second"
        ),
    )


def _rate(per_second: float) -> str:
    return f"{format_number(round(per_second, 2))}/s"


def _segments() -> list[Segment]:
    return [
        Segment(
            KeySource.POOL.value,
            _translate("KeypoolPanel", "With pool"),
            _translate("KeypoolPanel", "Keys made ahead of time"),
            _translate(
                "KeypoolPanel",
                "Key pairs are generated in idle time, wrapped, kept outside, and loaded back into the token.",
            ),
            _ICONS[KeySource.POOL],
        ),
        Segment(
            KeySource.GENERATED.value,
            _translate("KeypoolPanel", "Without pool"),
            _translate("KeypoolPanel", "A key generated for each request"),
            _translate("KeypoolPanel", "What an HSM does by itself: slow for RSA keys."),
            _ICONS[KeySource.GENERATED],
        ),
    ]


def _timing_editor(spec: FieldSpec) -> Editor:
    """A list of the profiles that come with the console; the device stands in the tooltip of each."""
    names = [value for value, _label in spec.choices]
    editor = ChoiceEditor(replace(spec, choices=tuple((name, name) for name in names)))
    for place, name in enumerate(names):
        editor.combo.setItemData(place, load_timing(name).title, Qt.ItemDataRole.ToolTipRole)
    return editor
