#pragma once

#include "io/dpdk_port.hpp"

#include <string>

namespace gatemark::io::test {

/// Starts DPDK if that has not happened yet (once in a process), without huge pages. False if it
/// failed; the reason was printed.
[[nodiscard]] bool start_environment();

/// Options of a port with the name `text`, which must be valid.
[[nodiscard]] PortOptions port_options(const std::string& side, const std::string& text);

/// Sends all buffers of a pool and checks, once they are free again, that the driver has not
/// changed them.
void expect_sent_buffers_unchanged(DpdkPort& port);

}  // namespace gatemark::io::test
