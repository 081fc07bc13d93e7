// SPDX-License-Identifier: BSD-3-Clause
// Captures by several configurations at once: embedder end|throw|exit|return|stop|slow|TIMES CONFIG.yaml...
#include <cstdio>
#include <cstdlib>
#include <future>
#include <list>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <gdrcap.h>

struct Capture {
	const char *name;
	gdrcap_session *session = nullptr;
	uint64_t frames = 0;
	explicit Capture(const char *file) : name(file) {
		gdrcap_config *config = gdrcap_config_new();
		gdrcap_error error{};
		gdrcap_config_set_log(config, log, this);
		const bool runs = !gdrcap_config_load(config, file, &error) &&
				  !gdrcap_create(config, &session, &error) && !gdrcap_start(session, &error);
		gdrcap_config_free(config);
		if (!runs) {
			gdrcap_destroy(session);
			throw std::runtime_error(std::string(file) + ": " + error.text);
		}
	}
	Capture(const Capture &) = delete;
	~Capture() { gdrcap_destroy(session); } // stops it first
	static void log(void *self, gdrcap_log_level level, const char *line) { // on any thread
		if (level <= GDRCAP_LOG_WARNING)
			fprintf(stderr, "%s: %s\n", static_cast<Capture *>(self)->name, line);
	}
};

static bool run(const std::string &how, char **files) {
	static std::list<Capture> *kept;
	std::list<Capture> captures;
	while (*files)
		captures.emplace_back(*files++);
	auto other = std::async(how == "stop" ? std::launch::async : std::launch::deferred, [&] {
		for (Capture &capture : captures)
			gdrcap_stop(capture.session, nullptr); // what this thread waits for
	});
	for (bool more = true; more;) {
		more = false;
		for (Capture &capture : captures) {
			gdrcap_queue *queue = gdrcap_get_queue(capture.session, 0);
			const gdrcap_batch *batch;
			const int count = gdrcap_wait(queue, &batch, 1, 10000); // us
			if (count > 0) {
				usleep(how == "slow" ? 1000 : 0); // frame i begins at gdrcap_frame(batch, i)
				capture.frames += batch->count;
				gdrcap_release(queue, &batch, 1);
			}
			more |= count >= 0; // else nothing will come any more
		}
		if (how == "throw")
			throw std::runtime_error("the program's own error"); // ends the captures with their owner
		if (how == "exit")
			exit(3); // while they run
		if (how == "return")
			return (kept = new std::list<Capture>(std::move(captures))); // main returns while they run
	}
	bool good = true;
	for (Capture &capture : captures) {
		gdrcap_error error{};
		good &= gdrcap_stop(capture.session, &error) == 0;
		printf("%s: %llu frames %s\n", capture.name, (unsigned long long)capture.frames, error.text);
	}
	return good;
}

int main(int argc, char **argv) try {
	bool good = argc > 2;
	for (int times = argc > 1 && atoi(argv[1]) ? atoi(argv[1]) : 1; good && times; times--)
		good = run(argv[1], argv + 2);
	return good ? 0 : 1;
} catch (const std::exception &error) {
	fprintf(stderr, "%s\n", error.what());
	return 4;
}
