#include "fuzz/script.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gatemark::fuzz::Script script{{data, size}};
    gatemark::fuzz::run(script);
    return 0;
}
