#include "io/kernel_interface.hpp"
#include "io/xdp_socket.hpp"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace gatemark::io {
namespace {

int bpf(bpf_cmd command, bpf_attr& attributes) { return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof(attributes))); }

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

int make_map(std::size_t sockets) {
    bpf_attr attributes{};
    attributes.map_type = BPF_MAP_TYPE_XSKMAP;
    attributes.key_size = attributes.value_size = sizeof(int);
    attributes.max_entries = static_cast<std::uint32_t>(sockets);
    return bpf(BPF_MAP_CREATE, attributes);
}

bool put(int map, std::uint32_t queue, int socket) {
    bpf_attr attributes{};
    attributes.map_fd = static_cast<std::uint32_t>(map);
    attributes.key = address_of(&queue);
    attributes.value = address_of(&socket);
    return bpf(BPF_MAP_UPDATE_ELEM, attributes) == 0;
}

/// return bpf_redirect_map(&map, context->rx_queue_index, XDP_PASS);
int load_program(int map) {
    constexpr auto queue = static_cast<std::int16_t>(offsetof(xdp_md, rx_queue_index));
    const std::array program{
        bpf_insn{.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1, .off = queue, .imm = 0},
        bpf_insn{.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .off = 0, .imm = map},
        bpf_insn{},  // second half of the instruction before
        bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .src_reg = 0, .off = 0, .imm = XDP_PASS},
        bpf_insn{.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = BPF_FUNC_redirect_map},
        bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
    };
    bpf_attr attributes{};
    attributes.prog_type = BPF_PROG_TYPE_XDP;
    attributes.insns = address_of(program.data());
    attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
    attributes.license = address_of("");
    return bpf(BPF_PROG_LOAD, attributes);
}

/// A link disappears with its descriptor, even if the process is killed, so no interface is left
/// with a program.
int attach_to(int interface_index, int program) {
    bpf_attr attributes{};
    attributes.link_create.prog_fd = static_cast<std::uint32_t>(program);
    attributes.link_create.target_ifindex = static_cast<std::uint32_t>(interface_index);
    attributes.link_create.attach_type = BPF_XDP;
    return bpf(BPF_LINK_CREATE, attributes);
}

}  // namespace

Result<std::unique_ptr<XdpRedirect>> XdpRedirect::attach(const std::string& interface, std::span<const int> sockets) {
    const auto kernel_interface = find_kernel_interface(interface);
    if (const auto* const error = std::get_if<Error>(&kernel_interface)) {
        return *error;
    }
    std::unique_ptr<XdpRedirect> redirect{new XdpRedirect};
    if (const int reason = redirect->set_up(std::get<KernelInterface>(kernel_interface).index, sockets); reason != 0) {
        return Error{.what = std::string{"could not attach an XDP program: "} + std::strerror(reason),
                     .where = "interface " + interface,
                     .fix =
                         "run as root; no other program may use XDP on this interface; on a veth the other end's MTU may be at most "
                         "3506 octets (ip link set ... mtu 1500); or use af_packet"};
    }
    return redirect;
}

int XdpRedirect::set_up(int interface_index, std::span<const int> sockets) {
    map_ = make_map(sockets.size());
    if (map_ < 0) {
        return errno;
    }
    for (std::uint32_t queue = 0; queue < sockets.size(); ++queue) {
        if (!put(map_, queue, sockets[queue])) {
            return errno;
        }
    }
    program_ = load_program(map_);
    link_ = program_ < 0 ? -1 : attach_to(interface_index, program_);
    return link_ < 0 ? errno : 0;
}

XdpRedirect::~XdpRedirect() {
    for (const int descriptor : {link_, program_, map_}) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
}

}  // namespace gatemark::io
