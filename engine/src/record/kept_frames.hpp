#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gatemark::record {

/// The first few frames of each reason, complete, for a person to examine. All memory is allocated
/// before the trial.
class KeptFrames {
public:
    static constexpr std::size_t bytes_max = 2048;
    struct Kept {
        std::size_t reason, bytes;
        const std::byte* data;
    };

    KeptFrames(std::size_t reasons, std::size_t frames_max)
        : frames_max_{frames_max}, used_(reasons, 0), lengths_(reasons * frames_max), data_(reasons * frames_max * bytes_max) {}

    void keep(std::size_t reason, std::span<const std::byte> frame) noexcept {
        if (used_[reason] >= frames_max_) {
            return;
        }
        const std::size_t slot = reason * frames_max_ + used_[reason]++;
        lengths_[slot] = std::min(frame.size(), bytes_max);
        std::copy_n(frame.begin(), lengths_[slot], data_.begin() + static_cast<std::ptrdiff_t>(slot * bytes_max));
    }
    void clear() noexcept { std::fill(used_.begin(), used_.end(), 0); }

    template <class Visitor>
    void visit(Visitor&& visitor) const {
        for (std::size_t reason = 0; reason < used_.size(); ++reason) {
            for (std::size_t i = 0; i < used_[reason]; ++i) {
                const std::size_t slot = reason * frames_max_ + i;
                visitor(Kept{reason, lengths_[slot], data_.data() + slot * bytes_max});
            }
        }
    }

private:
    std::size_t frames_max_;
    std::vector<std::size_t> used_, lengths_;
    std::vector<std::byte> data_;
};

}  // namespace gatemark::record
