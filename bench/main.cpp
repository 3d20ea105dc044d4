#include "pace/calibrate.hpp"
#include "tick_counter.hpp"

#include <string>

int main(int argc, char** argv) {
    gatemark::bench::pin_from_last(0);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    benchmark::AddCustomContext("ticks_per_second", std::to_string(gatemark::pace::ticks_per_second()));
    benchmark::AddCustomContext("compiler", "g++ " __VERSION__ " " GATEMARK_BUILD);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
