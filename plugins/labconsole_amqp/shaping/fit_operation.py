"""`labconsole fit-link`: the setting of a shaped link that gives a message rate, as an operation."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result, TextTable
from labconsole.model.parameters import Parameters, parameter
from labconsole_amqp.shaping.fitting import Setting, find_setting, full_speed
from labconsole_amqp.shaping.link_model import LinkSettings


class FitLinkParameters(Parameters):
    """The messages, and the link as far as it is known."""

    rate: float = parameter(
        "Message rate", "Messages a second that the link shall carry", gt=0, le=1e6, unit="msg/s", metavar="RATE"
    )
    size: int = parameter(
        "Message size", "Size of an encoded message, as a run shows it", ge=1, le=1 << 23, unit="B", metavar="SIZE"
    )
    link_rate: float = parameter("Link rate", "Rate to the broker", default=2.0, gt=0, le=10_000, unit="Mbit/s")
    link_delay: float = parameter(
        "Delay",
        "Time on the way, each way, where another setting is searched for",
        default=10.0,
        ge=0,
        le=10_000,
        unit="ms",
    )
    link_window: float = parameter(
        "TCP window", "The window, where another setting is searched for", default=64.0, ge=1.5, le=65_536, unit="KiB"
    )


class FitLink(Operation[FitLinkParameters]):
    """Finds settings of a shaped link."""

    name: ClassVar[str] = "amqp.fit-link"
    title: ClassVar[str] = "Find link settings"
    description: ClassVar[str] = (
        "Calculates which delay, TCP window or loss of a shaped link gives a message rate at full speed, each for "
        "itself, in the model by which the built-in shaper works. A run with the setting shows whether it does."
    )
    parameters: ClassVar[type[Parameters]] = FitLinkParameters

    def run(self, parameters: FitLinkParameters, context: OperationContext) -> Result:
        rate = parameters.link_rate * 1e6
        delay_ns, window = round(parameters.link_delay * 1e6), round(parameters.link_window * 1024)
        link = LinkSettings(rate, rate, delay_ns, window=window)
        plain = full_speed(replace(link, delay_ns=0), parameters.size)
        if parameters.rate >= plain:
            raise UserError(
                f"A link of {parameters.link_rate:g} Mbit/s carries {plain:.3g} messages of {parameters.size:,} B a "
                "second without any delay or loss: choose a lower message rate or a faster link."
            )
        rows, data = [], []
        for number, setting in enumerate(Setting, 1):
            if context.stop_requested:
                break
            one = find_setting(setting, link, parameters.size, parameters.rate)
            context.progress(number, len(Setting))
            if one is None:
                continue
            carried = full_speed(one, parameters.size)
            name, value, unit = _described(setting, one)
            rows.append((f"link_{setting.value}", name, f"{value:.4g} {unit}", f"{carried:.3g} msg/s"))
            data.append({"setting": f"link_{setting.value}", "value": value, "unit": unit, "rate": carried})
        alone = f"Calculated: the link alone carries {plain:.3g} msg/s."
        if not rows:
            text = f"{alone} No delay up to 1 s, window or loss gives {parameters.rate:g} msg/s by itself."
            return Result((text,), {"link_alone": plain, "settings": []}, passed=False)
        sentence = f"{alone} Each row by itself comes as near to {parameters.rate:g} msg/s as its setting can."
        if any(one["setting"] == "link_loss" for one in data):
            sentence += " TCP also sends less after a loss, which the model leaves out: a real link needs less loss."
        table = TextTable(("Parameter", "Setting", "Value", "Calculated rate"), tuple(rows))
        return Result((sentence, table), {"link_alone": plain, "settings": data})


def _described(setting: Setting, link: LinkSettings) -> tuple[str, float, str]:
    """The name, value and unit of a setting, as the form of a run has them."""
    return {
        Setting.DELAY: ("Delay", link.delay_ns / 1e6, "ms"),
        Setting.WINDOW: ("TCP window", link.window / 1024, "KiB"),
        Setting.LOSS: ("Loss", link.loss * 100, "%"),
    }[setting]
