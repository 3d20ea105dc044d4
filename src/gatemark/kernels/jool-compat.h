/* Included before each file of Jool, whose modules need a function that newer kernels keep for themselves. */
#ifndef GATEMARK_JOOL_COMPAT_H
#define GATEMARK_JOOL_COMPAT_H

#include <linux/percpu.h>
#include <net/ip.h> /* it declares the function, so that the macro below comes after that */

/* The sum of a counter over all CPUs. */
#define snmp_fold_field(table, index)                                          \
	({                                                                     \
		unsigned long gatemark_sum = 0;                                \
		int gatemark_cpu;                                              \
		for_each_possible_cpu(gatemark_cpu)                            \
			gatemark_sum += ((unsigned long *)per_cpu_ptr(         \
				table, gatemark_cpu))[index];                  \
		gatemark_sum;                                                  \
	})

#endif
