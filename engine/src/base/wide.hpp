#pragma once

namespace gatemark {

/// 128 bits for products of a count and a frequency: 60 s at 148.8 million frames/s times a 3 GHz
/// clock does not fit into 64.
__extension__ typedef unsigned __int128 Wide;

}  // namespace gatemark
