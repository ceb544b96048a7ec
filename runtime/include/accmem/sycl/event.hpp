/* SPDX-License-Identifier: MIT */
/*
 * SYCL on accmem: events, and the thread that executes a queue's commands.
 *
 * A queue has a thread from its first command on. The thread executes the commands in the
 * order of submission, which SYCL permits for every queue. Before a command it waits for
 * the events that the command depends on. These belong to commands that were submitted
 * before, so the oldest command can always run.
 *
 * A child of fork() has none of the threads. The commands of its parent count as complete
 * in the child. The child's own commands are executed by threads of its own.
 */
#ifndef ACCMEM_SYCL_EVENT_HPP
#define ACCMEM_SYCL_EVENT_HPP

#include <accmem/sycl/context.hpp>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>

namespace accmem {
namespace sycl {

namespace info {

enum class event_command_status { submitted, running, complete };

namespace event {
struct command_execution_status {
	using return_type = info::event_command_status;
};
} // namespace event

namespace event_profiling {
struct command_submit { using return_type = std::uint64_t; };
struct command_start { using return_type = std::uint64_t; };
struct command_end { using return_type = std::uint64_t; };
} // namespace event_profiling

} // namespace info

namespace detail {

inline std::uint64_t now_ns()
{
	using namespace std::chrono;

	return duration_cast<nanoseconds>(
		       steady_clock::now().time_since_epoch())
		.count();
}

using error_list = std::vector<std::exception_ptr>;

/* The errors of a queue's commands that the program has not asked for. */
struct error_store {
	explicit error_store(const async_handler &h) : handler(h) {}

	std::mutex lock; /* protects @errors */
	error_list errors;
	const async_handler handler;

	/* Call the handler. Without a handler an error ends the program, as in SYCL. */
	void report()
	{
		error_list taken;
		{
			std::lock_guard<std::mutex> guard(lock);

			taken.swap(errors);
		}
		if (taken.empty())
			return;
		if (handler)
			handler(exception_list(std::move(taken)));
		else
			unhandled(taken.front());
	}

private:
	[[noreturn]] static void unhandled(std::exception_ptr error) noexcept
	{
		std::rethrow_exception(error);
	}
};

/* The state of a command. */
class event_state {
public:
	using list = std::vector<std::shared_ptr<event_state>>;

	event_state(std::shared_ptr<error_store> store, bool profiled,
		    list after)
		: store_(std::move(store)), profiled_(profiled),
		  born_(generation()), submitted_(now_ns()),
		  after_(std::move(after))
	{
	}

	bool is_foreign() const { return born_ != generation(); }
	bool profiled() const { return profiled_; }
	error_store &store() { return *store_; }

	void begin()
	{
		std::lock_guard<std::mutex> guard(lock_);

		status_ = info::event_command_status::running;
		started_ = now_ns();
	}

	void end()
	{
		list after; /* destroyed without the lock */
		std::lock_guard<std::mutex> guard(lock_);

		after.swap(after_);
		status_ = info::event_command_status::complete;
		ended_ = now_ns();
		changed_.notify_all();
	}

	void wait()
	{
		if (is_foreign())
			return;
		std::unique_lock<std::mutex> guard(lock_);

		changed_.wait(guard, [this] {
			return status_ == info::event_command_status::complete;
		});
	}

	/* The events that the command depends on; none when it is complete. */
	list after()
	{
		if (is_foreign())
			return {};
		std::lock_guard<std::mutex> guard(lock_);

		return after_;
	}

	info::event_command_status status()
	{
		if (is_foreign())
			return info::event_command_status::complete;
		std::lock_guard<std::mutex> guard(lock_);

		return status_;
	}

	std::uint64_t time(info::event_profiling::command_submit)
	{
		return submitted_;
	}
	std::uint64_t time(info::event_profiling::command_start)
	{
		wait();
		return started_;
	}
	std::uint64_t time(info::event_profiling::command_end)
	{
		wait();
		return ended_;
	}

private:
	const std::shared_ptr<error_store> store_;
	const bool profiled_;
	const unsigned int born_;
	const std::uint64_t submitted_;
	std::mutex lock_; /* protects all fields below */
	std::condition_variable changed_;
	info::event_command_status status_ =
		info::event_command_status::submitted;
	std::uint64_t started_ = 0, ended_ = 0;
	list after_;
};

} // namespace detail

class event {
public:
	/* The event of a command that is complete. */
	event() = default;

	/* Only for accmem itself. */
	explicit event(std::shared_ptr<detail::event_state> state)
		: state_(std::move(state))
	{
	}

	void wait()
	{
		if (state_)
			state_->wait();
	}
	static void wait(const std::vector<event> &list)
	{
		for (event e : list)
			e.wait();
	}
	void wait_and_throw()
	{
		wait();
		if (state_ && !state_->is_foreign())
			state_->store().report();
	}
	static void wait_and_throw(const std::vector<event> &list)
	{
		wait(list);
		for (event e : list)
			e.wait_and_throw();
	}
	/* The events that the command depends on; none when it is complete. */
	std::vector<event> get_wait_list()
	{
		std::vector<event> list;

		if (state_)
			for (const auto &state : state_->after())
				list.emplace_back(state);
		return list;
	}
	backend get_backend() const noexcept { return backend::accmem; }

	template <typename Parameter>
	typename Parameter::return_type get_info() const
	{
		static_assert(std::is_same_v<
			      Parameter, info::event::command_execution_status>);
		return state_ ? state_->status() :
				info::event_command_status::complete;
	}

	/* Time in nanoseconds. Waits for a time that is not known yet. */
	template <typename Parameter>
	typename Parameter::return_type get_profiling_info() const
	{
		if (!state_ || !state_->profiled())
			detail::fail(errc::invalid,
				     "the queue has not enable_profiling");
		return state_->time(Parameter{});
	}

	friend bool operator==(const event &a, const event &b)
	{
		return a.state_ == b.state_;
	}
	friend bool operator!=(const event &a, const event &b)
	{
		return !(a == b);
	}

	const std::shared_ptr<detail::event_state> &state() const
	{
		return state_;
	}

private:
	std::shared_ptr<detail::event_state> state_;
};

namespace detail {

struct command {
	std::function<void()> run;
	std::shared_ptr<event_state> state;
};

/*
 * While an object exists, threads that are created block all signals, so that handlers
 * run in threads of the program. Signals that a kernel raises by a fault are not
 * blocked.
 */
class signals_blocked {
public:
	signals_blocked()
	{
		sigset_t most;

		sigfillset(&most);
		for (int raised : { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
				    SIGABRT, SIGSYS })
			sigdelset(&most, raised);
		pthread_sigmask(SIG_BLOCK, &most, &before_);
	}
	~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
	signals_blocked(const signals_blocked &) = delete;
	signals_blocked &operator=(const signals_blocked &) = delete;

private:
	sigset_t before_;
};

/* A thread and its queued commands. Both end after the queue. */
class worker : public std::enable_shared_from_this<worker> {
public:
	void submit(command c)
	{
		std::lock_guard<std::mutex> guard(lock_);

		if (!thread_.joinable())
			start();
		commands_.push_back(std::move(c));
		changed_.notify_all();
	}

	/*
	 * End the thread after the last command. If a command destroys the
	 * queue, the thread ends itself, and @used exists until the remaining
	 * commands have ended.
	 */
	void finish(std::shared_ptr<void> used)
	{
		{
			std::lock_guard<std::mutex> guard(lock_);

			ending_ = true;
			changed_.notify_all();
		}
		if (!thread_.joinable())
			return;
		if (thread_.get_id() == std::this_thread::get_id()) {
			used_ = std::move(used);
			thread_.detach();
		} else {
			thread_.join();
		}
	}

private:
	void start()
	{
		const signals_blocked blocked;

		try {
			thread_ = std::thread(
				[self = shared_from_this()] { self->work(); });
		} catch (const std::system_error &e) {
			fail(errc::runtime,
			     std::string("thread of a queue: ") + e.what());
		}
	}

	void work()
	{
		std::unique_lock<std::mutex> guard(lock_);

		for (;;) {
			changed_.wait(guard, [this] {
				return ending_ || !commands_.empty();
			});
			if (commands_.empty())
				return;
			command c = std::move(commands_.front());

			commands_.pop_front();
			guard.unlock();
			execute(c);
			c = {}; /* may be the last user of a queue */
			guard.lock();
		}
	}

	static void execute(command &c)
	{
		for (const auto &before : c.state->after())
			before->wait();
		c.state->begin();
		try {
			c.run();
		} catch (...) {
			error_store &store = c.state->store();
			std::lock_guard<std::mutex> guard(store.lock);

			store.errors.push_back(std::current_exception());
		}
		c.state->end();
	}

	std::mutex lock_; /* protects all fields below, until finish() */
	std::condition_variable changed_;
	std::deque<command> commands_;
	std::thread thread_;
	bool ending_ = false;
	std::shared_ptr<void> used_; /* only the thread uses this */
};

} // namespace detail
} // namespace sycl
} // namespace accmem

namespace std {
template <>
struct hash<accmem::sycl::event> {
	size_t operator()(const accmem::sycl::event &e) const
	{
		return hash<shared_ptr<accmem::sycl::detail::event_state>>()(
			e.state());
	}
};
} // namespace std

#endif // ACCMEM_SYCL_EVENT_HPP
