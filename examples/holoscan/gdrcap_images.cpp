// SPDX-License-Identifier: BSD-3-Clause
// gdrcap's images in a Holoscan application, as tensors where they lie: gdrcap_images CONFIG.yaml (image:). Needs
// the Holoscan SDK to be built: CMakeLists.txt. docs/embedding.md, "Holoscan", has the rules.
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <holoscan/holoscan.hpp>

#include <gdrcap.h>

// A session, until the operator and all tensors are done with it.
struct Session {
	gdrcap_session *session = nullptr;
	gdrcap_images *images = nullptr;

	Session(const std::string &file, uint32_t index) {
		gdrcap_config *config = gdrcap_config_new();
		gdrcap_error error{};
		const bool made = config && !gdrcap_config_load(config, file.c_str(), &error) &&
				  !gdrcap_config_set(config, "consumer.name", "host", &error) &&
				  !gdrcap_create(config, &session, &error);
		gdrcap_config_free(config);
		if (!made)
			throw std::runtime_error(error.text);
		images = gdrcap_get_images(session, index);
		if (!images || gdrcap_start(session, &error)) {
			gdrcap_destroy(session);
			throw std::runtime_error(images ? error.text : "image: there is no such description");
		}
	}
	Session(const Session &) = delete;
	~Session() { gdrcap_destroy(session); }
};

// One image as DLPack has it: bytes in a row. Released with its last reference, on whichever thread.
struct ImageTensor {
	DLManagedTensor managed{};
	int64_t bytes;
	std::shared_ptr<Session> session;
	const gdrcap_image *image;

	static DLManagedTensor *wrap(std::shared_ptr<Session> session, const gdrcap_image *image) {
		auto *made = new ImageTensor{ {}, int64_t(image->bytes), session, image };
		DLTensor &tensor = made->managed.dl_tensor;
		tensor.data = image->data;
		tensor.device = holoscan::dldevice_from_pointer(image->data);
		tensor.ndim = 1;
		tensor.dtype = { kDLUInt, 8, 1 };
		tensor.shape = &made->bytes;
		made->managed.manager_ctx = made;
		made->managed.deleter = [](DLManagedTensor *managed) {
			auto *self = static_cast<ImageTensor *>(managed->manager_ctx);
			gdrcap_image_release(self->session->images, &self->image, 1);
			delete self;
		};
		return &made->managed;
	}
};

class GdrcapImagesOp : public holoscan::Operator {
public:
	HOLOSCAN_OPERATOR_FORWARD_ARGS(GdrcapImagesOp)
	GdrcapImagesOp() = default;

	void setup(holoscan::OperatorSpec &spec) override {
		spec.output<holoscan::TensorMap>("images");
		spec.param(config_, "config", "Configuration", "gdrcap's YAML file", std::string("gdrcap.yaml"));
		spec.param(index_, "index", "Index", "Which of the configuration's images", uint32_t{ 0 });
	}
	void start() override {
		session_ = std::make_shared<Session>(config_.get(), index_.get());
		image_fd_ = gdrcap_image_fd(session_->images);
		stop_fd_ = eventfd(0, EFD_CLOEXEC);
		wanted_fd_ = eventfd(0, EFD_CLOEXEC);
		watcher_ = std::thread([this] { watch(); });
	}
	void compute(holoscan::InputContext &, holoscan::OutputContext &output,
		     holoscan::ExecutionContext &) override {
		const gdrcap_image *image;
		const int n = gdrcap_image_poll(session_->images, &image, 1);
		if (n < 0) { // the run is over, and the last image was taken
			gdrcap_error error{};
			async_condition()->event_state(holoscan::AsynchronousEventState::EVENT_NEVER);
			if (gdrcap_stop(session_->session, &error))
				throw std::runtime_error(error.text);
			return;
		}
		if (n == 1) {
			if (is_metadata_enabled()) {
				metadata()->set("gdrcap_number", image->number);
				metadata()->set("gdrcap_complete", image->end == GDRCAP_IMAGE_COMPLETE);
			}
			holoscan::TensorMap map;
			map.insert({ "image", std::make_shared<holoscan::Tensor>(
						      ImageTensor::wrap(session_, image)) });
			output.emit(map, "images");
		}
		async_condition()->event_state(holoscan::AsynchronousEventState::EVENT_WAITING);
		eventfd_write(wanted_fd_, 1);
	}
	void stop() override { // tensors that others still have stay valid
		eventfd_write(stop_fd_, 1);
		watcher_.join();
		close(stop_fd_);
		close(wanted_fd_);
		gdrcap_stop(session_->session, nullptr);
		session_.reset();
	}

private:
	// compute() may be called again once the images' descriptor is readable.
	void watch() {
		for (bool wanted = false;;) {
			pollfd fds[] = { { stop_fd_, POLLIN, 0 },
					 { wanted ? image_fd_ : wanted_fd_, POLLIN, 0 } };
			eventfd_t value;
			if (::poll(fds, 2, -1) < 0)
				continue; // a signal
			if (fds[0].revents)
				return;
			if (!wanted)
				eventfd_read(wanted_fd_, &value);
			else
				async_condition()->event_state(holoscan::AsynchronousEventState::EVENT_DONE);
			wanted = !wanted;
		}
	}

	holoscan::Parameter<std::string> config_;
	holoscan::Parameter<uint32_t> index_;
	std::shared_ptr<Session> session_;
	std::thread watcher_;
	int image_fd_ = -1, stop_fd_ = -1, wanted_fd_ = -1;
};

// Stands for the application's own operators.
class PrintOp : public holoscan::Operator {
public:
	HOLOSCAN_OPERATOR_FORWARD_ARGS(PrintOp)
	PrintOp() = default;

	void setup(holoscan::OperatorSpec &spec) override { spec.input<holoscan::TensorMap>("in"); }
	void compute(holoscan::InputContext &input, holoscan::OutputContext &,
		     holoscan::ExecutionContext &) override {
		auto map = input.receive<holoscan::TensorMap>("in");
		if (map)
			std::cout << map->at("image")->nbytes() << " bytes at " << map->at("image")->data()
				  << '\n';
	}
};

class App : public holoscan::Application {
public:
	std::string file;
	void compose() override {
		auto images = make_operator<GdrcapImagesOp>("images", holoscan::Arg("config", file));
		auto print = make_operator<PrintOp>("print");
		add_flow(images, print, { { "images", "in" } });
	}
};

int main(int argc, char **argv)
{
	auto app = holoscan::make_application<App>();
	app->file = argc > 1 ? argv[1] : "gdrcap.yaml";
	app->run();
}
