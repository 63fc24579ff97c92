"""An ARPA file read and asked word by word, by the definition of back-off."""


class Arpa:
    def __init__(self, path):
        self.probabilities, self.backoffs = {}, {}
        for line in path.read_text(encoding="utf-8").splitlines():
            if "\t" not in line:
                continue
            log10, gram, *backoff = line.split("\t")
            key = tuple(gram.split(" "))  # KenLM's words may have other white space in them
            self.probabilities[key] = float(log10)
            self.backoffs[key] = float(backoff[0]) if backoff else 0.0
        self.order = max(map(len, self.probabilities))

    def score(self, history, word):
        """log10 p(word | history)."""
        key = (*history, word)
        if key in self.probabilities:
            return self.probabilities[key]
        if not history:
            return self.probabilities[("<unk>",)]
        return self.backoffs.get(tuple(history), 0.0) + self.score(history[1:], word)

    def sentence(self, words):
        """log10 of each token, the end included."""
        known = [word if (word,) in self.probabilities else "<unk>" for word in [*words, "</s>"]]
        whole = ["<s>", *known]
        return [self.score(whole[max(0, place + 2 - self.order) : place + 1], word) for place, word in enumerate(known)]
