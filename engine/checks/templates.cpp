#include "io/memory_port.hpp"
#include "loop/echo_client.hpp"
#include "loop/echo_responder.hpp"
#include "loop/neighbor_responder.hpp"
#include "loop/receiver.hpp"
#include "loop/sender.hpp"
#include "loop/timed_task.hpp"
#include "refdut/gateway.hpp"
#include "refdut/memory_forwarding_port.hpp"
#include "refdut/worker.hpp"
#include "state/reply_writer.hpp"

/// Every template of the path of a frame, instantiated whole over ports made of memory: clang-tidy
/// and the compiler for another CPU see only what is instantiated, and in the engine that is done
/// with DPDK's headers, which the compiler for another CPU lacks.
namespace gatemark {

template class loop::Sender<io::MemoryTransmitQueue, pace::CycleClock, frame::StreamWriter>;
template class loop::Sender<io::MemoryTransmitQueue, pace::CycleClock, state::ReplyWriter>;
template class loop::Receiver<io::MemoryReceiveQueue, pace::CycleClock>;
template class loop::Sender<io::MemoryTransmitQueue, pace::CycleClock, loop::EchoWriter>;
template class loop::ClosedLoopSender<io::MemoryTransmitQueue, pace::CycleClock>;
template class loop::ReplySender<io::MemoryTransmitQueue, pace::CycleClock>;
template class loop::EchoReceiver<io::MemoryReceiveQueue, loop::RequestHandler>;
template class loop::EchoReceiver<io::MemoryReceiveQueue, loop::ReplyHandler>;
template class loop::TimedTask<pace::CycleClock>;
template class loop::NeighborResponder<io::MemoryTransmitQueue>;

template class refdut::Gateway<refdut::MemoryForwardingPort, pace::CycleClock>;
template class refdut::Worker<refdut::Gateway<refdut::MemoryForwardingPort, pace::CycleClock>, refdut::Command>;

}  // namespace gatemark
