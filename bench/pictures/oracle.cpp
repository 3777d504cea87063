// Answers questions about pictures with llama.cpp's own multimodal code (tools/mtmd), greedily. The answers are the fixtures of
// test/engines/llama/vision; README.md in this folder says how this is built and run.
//
// usage: oracle TEXT.gguf MMPROJ.gguf CASES. A line of CASES: a name, the number of tokens to generate, the file of the prompt
// with a <__media__> for each picture, and a file for each picture: width and height as 32-bit integers, then the pixels.
// Prints a line of JSON for each case. `gaps`: by how much each token's logit exceeded the next best.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "llama.h"
#include "mtmd-helper.h"
#include "mtmd.h"

static std::string contents(const std::string & path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

static void quiet(enum ggml_log_level, const char *, void *) {}

template <class T>
static std::string list(const std::vector<T> & values) {
    std::ostringstream out;
    for (size_t i = 0; i < values.size(); i++) out << (i ? "," : "") << values[i];
    return "[" + out.str() + "]";
}

int main(int argc, char ** argv) {
    if (argc != 4) return 2;
    llama_log_set(quiet, nullptr);
    mtmd_log_set(quiet, nullptr);
    ggml_backend_load_all_from_path(getenv("GGML_BACKENDS"));
    llama_model * model = llama_model_load_from_file(argv[1], llama_model_default_params());
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 8192;
    params.n_batch = params.n_ubatch = 512;
    params.n_threads = params.n_threads_batch = 1;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama_context * context = llama_init_from_model(model, params);
    mtmd_context_params tower = mtmd_context_params_default();
    tower.use_gpu = false;
    tower.n_threads = 1;
    tower.warmup = false;
    tower.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    mtmd_context * pictures = mtmd_init_from_file(argv[2], model, tower);
    if (!model || !context || !pictures) return 1;
    const llama_vocab * vocabulary = llama_model_get_vocab(model);
    const int size = llama_vocab_n_tokens(vocabulary);

    std::ifstream cases(argv[3]);
    for (std::string line; std::getline(cases, line);) {
        std::istringstream words(line);
        std::string name, prompt_path, path;
        int count;
        words >> name >> count >> prompt_path;
        std::vector<mtmd_bitmap *> bitmaps;
        while (words >> path) {
            const std::string file = contents(path);
            const uint32_t * head = (const uint32_t *) file.data();
            bitmaps.push_back(mtmd_bitmap_init(head[0], head[1], (const unsigned char *) file.data() + 8));
        }
        const std::string prompt = contents(prompt_path);
        mtmd_input_text text{};
        text.text = prompt.data();
        text.text_len = prompt.size();
        text.add_special = false;
        text.parse_special = true;
        mtmd_input_chunks * chunks = mtmd_input_chunks_init();
        if (mtmd_tokenize(pictures, chunks, &text, (const mtmd_bitmap **) bitmaps.data(), bitmaps.size())) return 1;
        // A number of rows is written as a negative number.
        std::vector<int> read;
        for (size_t i = 0; i < mtmd_input_chunks_size(chunks); i++) {
            const mtmd_input_chunk * chunk = mtmd_input_chunks_get(chunks, i);
            size_t tokens = 0;
            if (mtmd_input_chunk_get_type(chunk) != MTMD_INPUT_CHUNK_TYPE_TEXT) {
                read.push_back(-(int) mtmd_input_chunk_get_n_tokens(chunk));
                continue;
            }
            const llama_token * ids = mtmd_input_chunk_get_tokens_text(chunk, &tokens);
            read.insert(read.end(), ids, ids + tokens);
        }
        llama_memory_clear(llama_get_memory(context), true);
        llama_pos past = 0;
        if (mtmd_helper_eval_chunks(pictures, context, chunks, 0, 0, 512, true, &past)) return 1;
        std::vector<int> tokens;
        std::vector<float> gaps;
        for (int i = 0; i < count; i++) {
            const float * logits = llama_get_logits_ith(context, -1);
            int best = 0;
            for (int t = 1; t < size; t++) if (logits[t] > logits[best]) best = t;
            float next = -1e30f;
            for (int t = 0; t < size; t++) if (t != best) next = std::max(next, logits[t]);
            tokens.push_back(best);
            gaps.push_back(logits[best] - next);
            if (llama_vocab_is_eog(vocabulary, best)) break;
            llama_batch batch = llama_batch_get_one(&best, 1);
            llama_pos at = past++;
            batch.pos = &at;
            if (llama_decode(context, batch)) return 1;
        }
        printf("{\"name\":\"%s\",\"prompt\":%s,\"tokens\":%s,\"gaps\":%s}\n", name.c_str(), list(read).c_str(),
               list(tokens).c_str(), list(gaps).c_str());
        mtmd_input_chunks_free(chunks);
        for (mtmd_bitmap * bitmap : bitmaps) mtmd_bitmap_free(bitmap);
    }
    mtmd_free(pictures);
    llama_free(context);
    llama_model_free(model);
}
