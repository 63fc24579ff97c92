#include "predict.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "beam.h"
#include "threads.h"

namespace compgen {
namespace {

using Indices = std::vector<std::size_t>;

void open(Decoder& decoder, const std::vector<Tokens>& sources, const Indices& indices) {
  const std::size_t width = sources[indices.back()].size() + 1;  // the last is the longest
  std::vector<std::int64_t> tokens(indices.size() * width, PAD);
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const Tokens& source = sources[indices[row]];
    *std::copy(source.begin(), source.end(), tokens.begin() + static_cast<std::ptrdiff_t>(row * width)) = EOS;
  }
  decoder.open(tokens, static_cast<std::int64_t>(indices.size()), static_cast<std::int64_t>(width));
}

// Answers the sources with these indices together.
void decode(const Bundle& bundle, Decoder& decoder, const std::vector<Tokens>& sources, const Indices& indices,
            const Answering& how, std::vector<std::vector<Answer>>& found) {
  open(decoder, sources, indices);
  if (how.beam > 1) {
    auto best = beam(decoder, static_cast<std::int64_t>(indices.size()), how.beam, how.best, bundle.max_length);
    for (std::size_t row = 0; row < indices.size(); ++row) found[indices[row]] = std::move(best[row]);
  } else {
    auto one = write(decoder, std::vector<Tokens>(indices.size()), bundle.max_length);
    for (std::size_t row = 0; row < indices.size(); ++row) found[indices[row]] = {std::move(one[row])};
  }
}

// Adds the log-probabilities of targets, each given its source and with its end symbol.
void score(Decoder& decoder, const std::vector<Tokens>& sources, const std::vector<Tokens>& targets,
           const Indices& indices, std::vector<double>& found) {
  open(decoder, sources, indices);
  std::vector<Tokens> given;
  std::size_t longest = 0;
  for (const auto index : indices) {
    given.push_back(targets[index]), given.back().push_back(EOS);
    longest = std::max(longest, given.back().size());
  }
  const auto written = write(decoder, given, static_cast<std::int64_t>(longest));
  for (std::size_t row = 0; row < indices.size(); ++row) found[indices[row]] += written[row].log_prob;
}

// Calls `work` with a decoder of its thread and the indices of sources that share a batch, those of like length.
void in_batches(Predictor& predictor, const std::vector<Tokens>& sources, const Answering& how,
                const std::function<void(Decoder&, const Indices&)>& work) {
  Indices order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  const auto each = static_cast<std::size_t>(how.slots);
  share((order.size() + each - 1) / each, how.workers, [&] {
    return [&, decoder = predictor.decoder()](std::size_t batch) {
      const auto begin = order.begin() + static_cast<std::ptrdiff_t>(batch * each);
      const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min((batch + 1) * each, order.size()));
      work(*decoder, Indices(begin, end));
    };
  });
}

}  // namespace

std::vector<Answer> write(Decoder& decoder, const std::vector<Tokens>& given, std::int64_t max_length) {
  std::vector<Answer> found(given.size());
  Indices running(given.size());
  std::iota(running.begin(), running.end(), std::size_t{0});
  for (std::size_t step = 0; step < static_cast<std::size_t>(max_length) && !running.empty(); ++step) {
    decoder.advance();
    const std::size_t vocabulary = decoder.log_probs.size() / running.size();
    Indices going;
    std::vector<std::int64_t> kept;
    for (std::size_t row = 0; row < running.size(); ++row) {
      const Tokens& forced = given[running[row]];
      if (step < forced.size()) decoder.token[row] = forced[step];
      const auto token = decoder.token[row];
      Answer& answer = found[running[row]];
      answer.log_prob += decoder.log_probs[row * vocabulary + static_cast<std::size_t>(token)];
      answer.finished = token == EOS;
      if (answer.finished) continue;
      if (step >= forced.size()) answer.target.push_back(static_cast<std::int32_t>(token));
      going.push_back(running[row]), kept.push_back(static_cast<std::int64_t>(row));
    }
    if (!going.empty() && going.size() < running.size()) decoder.keep(kept);
    running = std::move(going);
  }
  return found;
}

std::vector<std::vector<Answer>> answers(const Bundle& bundle, Predictor& predictor, const std::vector<Tokens>& sources,
                                         const Answering& how) {
  std::vector<std::vector<Answer>> found(sources.size());
  in_batches(predictor, sources, how, [&](Decoder& decoder, const Indices& indices) {
    decode(bundle, decoder, sources, indices, how, found);
  });
  return found;
}

Answers answers_to_those_with_tokens(const std::vector<Tokens>& sources, const Ask& ask) {
  std::vector<Tokens> asked;
  for (const auto& source : sources) {
    if (!source.empty()) asked.push_back(source);
  }
  auto found = ask(asked);
  Answers all(sources.size());
  std::size_t next = 0;
  for (std::size_t row = 0; row < sources.size(); ++row) {
    if (!sources[row].empty()) all[row] = std::move(found[next++]);
  }
  return all;
}

std::vector<std::vector<Answer>> answers_together(const std::vector<Member>& members, const std::vector<Tokens>& sources,
                                                  const Answering& how) {
  std::vector<std::vector<Answer>> ranked(sources.size());
  for (const auto& member : members) {
    auto proposed = answers(member.bundle, member.predictor, sources, how);
    for (std::size_t row = 0; row < sources.size(); ++row) {
      for (auto& answer : proposed[row]) {
        const auto same = [&](const Answer& other) { return other.target == answer.target; };
        if (std::none_of(ranked[row].begin(), ranked[row].end(), same)) ranked[row].push_back(std::move(answer));
      }
    }
  }
  std::vector<Tokens> asked, targets;
  for (std::size_t row = 0; row < sources.size(); ++row) {
    for (const auto& answer : ranked[row]) asked.push_back(sources[row]), targets.push_back(answer.target);
  }
  std::vector<double> sums(asked.size());
  for (const auto& member : members) {
    in_batches(member.predictor, asked, how, [&](Decoder& decoder, const Indices& indices) {
      score(decoder, asked, targets, indices, sums);
    });
  }
  std::size_t at = 0;
  for (auto& answers : ranked) {
    for (auto& answer : answers) answer.log_prob = sums[at++] / static_cast<double>(members.size());
    std::stable_sort(answers.begin(), answers.end(),
                     [](const Answer& one, const Answer& other) { return one.log_prob > other.log_prob; });
    if (answers.size() > static_cast<std::size_t>(how.best)) answers.resize(static_cast<std::size_t>(how.best));
  }
  return ranked;
}

}  // namespace compgen
