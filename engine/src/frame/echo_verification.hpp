#pragma once

#include "frame/echo.hpp"
#include "frame/verification.hpp"

#include <optional>
#include <span>

namespace gatemark::frame {

/// Which of the two messages a receiver waits for: requests on the right, replies on the left.
enum class EchoKind : std::uint8_t { request, reply };

/// What a correct gateway makes of a message of this kind.
[[nodiscard]] inline const EchoFrame& expected_of(const Echo& echo, EchoKind kind) noexcept {
    return kind == EchoKind::request ? echo.expected_request() : echo.expected_reply();
}

/// Compares every field of an echo message with what a correct gateway makes of request `place` or
/// of its reply. `arrival` is what `classify_echo` says of the frame, which may be anything. With a
/// pool, the source of a request and its identifier are the gateway's choice: see `public_source`.
[[nodiscard]] Faults verify_echo(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind,
                                 const EchoPlace& place) noexcept;

/// The source that a stateful gateway gave to a request whose mark is in its place; none if it is
/// not in the pool.
[[nodiscard]] std::optional<PublicSource> public_source(std::span<const std::byte> frame, const Arrival& arrival,
                                                        const Echo& echo) noexcept;

/// Whether a message of the other kind came back to the port that it was sent from.
[[nodiscard]] bool came_back(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind) noexcept;

/// Whether a frame is an echo message of this kind between hosts of the trial: nobody but the
/// Tester has these addresses, so it is the Tester's whatever its mark says.
[[nodiscard]] bool goes_between_echo_hosts(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo,
                                           EchoKind kind) noexcept;

}  // namespace gatemark::frame
