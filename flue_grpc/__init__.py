"""Flue gRPC: an agent daemon's store and a read-only index over agent transcripts.

To embed both services in a gRPC server of your own::

    services = flue_grpc.add_services(server, flue_grpc.configure(home="/home/me"))
    server.start()
    ...
    services.drain(10)
    server.stop(1).wait()
    services.close()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import grpc

    from flue_grpc.config import Configuration
    from flue_grpc.services import Services

__all__ = ["add_services", "configure"]


def configure(**settings: object) -> Configuration:
    """Make settings of the named values and of defaults, without any file.

    The names are those that ``flue-grpc config`` prints. Raises ConfigError.
    """
    from flue_grpc.config import combine  # noqa: PLC0415  (importing us stays cheap)

    return combine(settings)


def add_services(server: grpc.Server, configuration: Configuration) -> Services:
    """Add the Store, the AgentIndex, health and reflection to somebody else's server.

    ``server`` is a synchronous one that is not started yet; calls run on threads
    of our own, whatever its pool. Close what is returned when the server has
    stopped; ``drain`` it before to let running calls finish. Raises StartupError
    when the Store or the index cannot be opened.
    """
    from flue_grpc import services  # noqa: PLC0415  (importing us stays cheap)

    return services.add_services(server, configuration)
