#pragma once

/// One source for every CPU: the compiler makes a version of the function for each of these
/// architecture levels, and the program chooses the best one when it starts. Sanitizers are not
/// initialised yet when that choice is made, so they get a single version.
#if defined(__x86_64__) && !defined(GATEMARK_SANITIZED)
#define GATEMARK_FOR_EACH_CPU [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define GATEMARK_FOR_EACH_CPU
#endif
