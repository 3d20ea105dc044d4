# DPDK from Debian's static libraries: a program that needs nothing of them at run time, for packages that are installed
# without DPDK. Drivers of cards that need libraries of their own at run time (mlx4, mlx5: rdma-core) are left out.

set(drivers
  bus_pci bus_vdev bus_vmbus mempool_ring
  net_af_packet net_af_xdp net_memif net_null net_ring net_tap net_virtio
  net_e1000 net_ena net_i40e net_iavf net_ice net_igc net_ixgbe net_netvsc net_vmxnet3 common_iavf)
set(libraries
  bpf cryptodev eal ethdev gso hash ip_frag kvargs mbuf mempool meter metrics net pci rcu ring security telemetry timer vhost)
set(system_libraries xdp bpf elf z numa fdt bsd md)

function(find_static result name)
  find_library(found_${name} lib${name}.a REQUIRED NO_CACHE)
  set(${result} ${found_${name}} PARENT_SCOPE)
endfunction()

foreach(name IN LISTS drivers)
  find_static(archive rte_${name})
  list(APPEND driver_archives ${archive})
endforeach()
foreach(name IN LISTS libraries)
  find_static(archive rte_${name})
  list(APPEND library_archives ${archive})
endforeach()
foreach(name IN LISTS system_libraries)
  find_static(archive ${name})
  list(APPEND library_archives ${archive})
endforeach()

string(REGEX MATCH "^[0-9]+" compiler_major ${CMAKE_CXX_COMPILER_VERSION})
# Whose licences go into the package, by the Debian packages that the archives are from.
set(GATEMARK_LINKED_PACKAGES
  libbpf-dev libbsd-dev libdpdk-dev libelf-dev libfdt-dev libmd-dev libnuma-dev libstdc++-${compiler_major}-dev
  libtomlplusplus-dev libxdp-dev nlohmann-json3-dev zlib1g-dev PARENT_SCOPE)

# Drivers register themselves in constructors, which nothing refers to: they are linked whole.
add_library(gatemark-dpdk INTERFACE)
target_link_libraries(gatemark-dpdk INTERFACE
  "$<LINK_LIBRARY:WHOLE_ARCHIVE,${driver_archives}>"
  "$<LINK_GROUP:RESCAN,${library_archives}>"
  Threads::Threads ${CMAKE_DL_LIBS} m)
# What nothing refers to is left out: std::random_device alone would ask for glibc 2.36.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)  # equal wherever it is made
target_link_options(gatemark-dpdk INTERFACE -static-libstdc++ -static-libgcc -Wl,--gc-sections -s)
