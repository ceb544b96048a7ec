// SPDX-License-Identifier: GPL-2.0
/*
 * EXPORT to a real importer: the driver vivid of the distribution's kernel, a camera that
 * writes a picture into each buffer. The first camera writes through vmap. The second camera
 * also attaches a device, which has 32 address lines and needs contiguous memory.
 *
 * All pictures are equal. So a picture in memory of the camera itself shows what a picture in
 * memory of an export must look like.
 */
#include <linux/videodev2.h>

#include "order_util.h"
#include "revoke_util.h"

/* two cameras with the same input; allocators: videobuf2's vmalloc and dma-contig */
#define CAMERAS \
	"vivid n_devs=2 node_types=1,1 num_inputs=1,1 input_types=0,0 allocators=0,1"

#define BUFFER KIB(256)
#define NR_BUFFERS 3
#define FRAME_MS 20000

#define CAPTURE V4L2_BUF_TYPE_VIDEO_CAPTURE
/* a control of vivid: no text in the picture, since the text would show the time */
#define OSD_TEXT_MODE (0x00f00000 | 0xf001)
#define OSD_TEXT_NONE 2

static int camera_call(int camera, unsigned long cmd, void *arg)
{
	return ioctl(camera, cmd, arg) ? -errno : 0;
}

/* opens a camera with a small picture; stores the size of the picture at @bytes */
static int camera_open(unsigned int nr, uint64_t *bytes)
{
	struct v4l2_format f = { .type = CAPTURE };
	struct v4l2_streamparm rate = { .type = CAPTURE };
	struct v4l2_control text = { OSD_TEXT_MODE, OSD_TEXT_NONE };
	char path[32];
	int camera;

	snprintf(path, sizeof(path), "/dev/video%u", nr);
	camera = open(path, O_RDWR | O_CLOEXEC);
	if (camera < 0)
		return -errno;
	f.fmt.pix.width = 320;
	f.fmt.pix.height = 180;
	f.fmt.pix.pixelformat = V4L2_PIX_FMT_YUYV;
	rate.parm.capture.timeperframe = (struct v4l2_fract){ 1, 30 };
	if (camera_call(camera, VIDIOC_S_FMT, &f) ||
	    camera_call(camera, VIDIOC_S_PARM, &rate) ||
	    camera_call(camera, VIDIOC_S_CTRL, &text)) {
		close(camera);
		return -EIO;
	}
	*bytes = f.fmt.pix.sizeimage;
	return camera;
}

/* requests buffers of a camera; with V4L2_MEMORY_DMABUF they have no memory yet */
static int camera_buffers(int camera, unsigned int count, unsigned int memory)
{
	struct v4l2_requestbuffers req = {
		.count = count,
		.type = CAPTURE,
		.memory = memory,
	};

	return camera_call(camera, VIDIOC_REQBUFS, &req);
}

static int camera_queue(int camera, unsigned int index, int dma_buf)
{
	struct v4l2_buffer b = {
		.index = index,
		.type = CAPTURE,
		.memory = V4L2_MEMORY_DMABUF,
		.m.fd = dma_buf,
	};

	return camera_call(camera, VIDIOC_QBUF, &b);
}

static int camera_start(int camera)
{
	int type = CAPTURE;

	return camera_call(camera, VIDIOC_STREAMON, &type);
}

/* takes the pictures and the buffers from the camera */
static int camera_stop(int camera)
{
	int type = CAPTURE;

	return camera_call(camera, VIDIOC_STREAMOFF, &type) ?:
		       camera_buffers(camera, 0, V4L2_MEMORY_DMABUF);
}

/* waits for a picture; returns the index of its buffer, or -errno */
static int camera_picture(int camera, unsigned int memory)
{
	struct v4l2_buffer b = { .type = CAPTURE, .memory = memory };
	struct pollfd p = { .fd = camera, .events = POLLIN };
	int err;

	if (poll(&p, 1, FRAME_MS) != 1)
		return -ETIME;
	err = camera_call(camera, VIDIOC_DQBUF, &b);
	if (!err && b.flags & V4L2_BUF_FLAG_ERROR)
		return -EIO;
	return err ?: (int)b.index;
}

/* takes a picture in memory of the camera, and a dma-buf of this memory if @dma_buf */
static char *camera_reference(int camera, uint64_t bytes, int *dma_buf)
{
	struct v4l2_buffer b = { .type = CAPTURE, .memory = V4L2_MEMORY_MMAP };
	struct v4l2_exportbuffer e = { .type = CAPTURE, .flags = O_RDWR };
	char *p;

	if (camera_buffers(camera, 1, V4L2_MEMORY_MMAP) ||
	    camera_call(camera, VIDIOC_QUERYBUF, &b))
		return NULL;
	p = mmap(NULL, bytes, RW, MAP_SHARED, camera, b.m.offset);
	if (p == MAP_FAILED || camera_call(camera, VIDIOC_QBUF, &b) ||
	    camera_start(camera) || camera_picture(camera, V4L2_MEMORY_MMAP))
		return NULL;
	if (dma_buf && !camera_call(camera, VIDIOC_EXPBUF, &e))
		*dma_buf = e.fd;
	return p;
}

FIXTURE(export_vivid)
{
	int fd;
	struct accmem_info info;
	struct accmem_alloc a;
	int camera;
	uint64_t bytes; /* of a picture */
	char *picture; /* a picture that the camera took in its own memory */
};

ACCMEM_VARIANTS(export_vivid);

FIXTURE_SETUP(export_vivid)
{
	int other;
	char *p;

	if (access("/dev/video1", F_OK))
		ASSERT_TRUE(stock_load(CAMERAS));
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	other = camera_open(0, &self->bytes);
	ASSERT_LE(0, other);
	ASSERT_GT(BUFFER, self->bytes);
	p = camera_reference(other, self->bytes, NULL);
	ASSERT_NE(NULL, p);
	self->picture = malloc(self->bytes);
	memcpy(self->picture, p, self->bytes);
	ASSERT_NE(-1, accmem_first_nonzero(p, self->bytes));
	munmap(p, self->bytes);
	close(other);
	self->camera = camera_open(0, &self->bytes);
	ASSERT_LE(0, self->camera);
}

FIXTURE_TEARDOWN(export_vivid)
{
	if (self->camera >= 0)
		close(self->camera);
	if (self->fd >= 0)
		close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	free(self->picture);
}

/* Takes a picture in a new buffer and maps it at @p. Returns the dma-buf, or -errno. */
static int take_picture(int fd, int camera, struct accmem_alloc *a, char **p)
{
	int d, err;

	ACCMEM_MUST(!accmem_ioctl_alloc(fd, a));
	*p = accmem_mapped(fd, a, BUFFER);
	memset(*p, 0xee, BUFFER);
	d = export_all(fd, a);
	if (d < 0)
		return d;
	err = camera_buffers(camera, 1, V4L2_MEMORY_DMABUF) ?:
		      camera_queue(camera, 0, d)	    ?:
		      camera_start(camera)		    ?:
		      camera_picture(camera, V4L2_MEMORY_DMABUF);
	if (!err)
		return d;
	close(d);
	return err;
}

/* The memory contains the picture, and the bytes behind the picture have not changed. */
static void check_picture(struct __test_metadata *_metadata, int fd,
			  const struct accmem_alloc *a, const char *p,
			  const char *picture, uint64_t bytes)
{
	struct accmem_access x = { .address = a->address, .length = bytes };
	char *read = malloc(bytes);
	uint64_t at;

	EXPECT_EQ(0, memcmp(p, picture, bytes));
	for (at = bytes; at < BUFFER && p[at] == (char)0xee; at++)
		;
	EXPECT_EQ(BUFFER, at);
	x.data = (uintptr_t)read;
	EXPECT_EQ(0, accmem_ioctl_access(fd, &x));
	EXPECT_EQ(0, memcmp(read, picture, bytes));
	free(read);
}

TEST_F(export_vivid, a_picture_arrives)
{
	int d;
	char *p;

	self->a.length = BUFFER;
	d = take_picture(self->fd, self->camera, &self->a, &p);
	ASSERT_LE(0, d);
	check_picture(_metadata, self->fd, &self->a, p, self->picture,
		      self->bytes);
	munmap(p, BUFFER);
	close(d);
}

TEST_F(export_vivid, uncached_memory)
{
	int d;
	char *p;

	if (!(self->info.cache_modes & 1u << ACCMEM_CACHE_UC))
		return; /* ALLOC has refused the mode */
	self->a.length = BUFFER;
	self->a.cache_mode = ACCMEM_CACHE_UC;
	d = take_picture(self->fd, self->camera, &self->a, &p);
	ASSERT_LE(0, d);
	check_picture(_metadata, self->fd, &self->a, p, self->picture,
		      self->bytes);
	munmap(p, BUFFER);
	close(d);
}

/*
 * The device phys is beyond 32 address lines, so that the camera is refused. This is not
 * tested, since Linux 6.12 then never drops the dma-buf (__prepare_dmabuf()).
 */
TEST_F(export_vivid, a_camera_that_needs_contiguous_memory)
{
	int camera = camera_open(1, &self->bytes), d;
	char *p;

	ASSERT_LE(0, camera);
	if (!strcmp(variant->path, ACCMEM_DEV_PHYS))
		return;
	self->a.length = BUFFER;
	self->a.page_policy = ACCMEM_PAGE_HUGE_ONLY;
	self->a.flags = ACCMEM_ALLOC_POPULATE;
	d = take_picture(self->fd, camera, &self->a, &p);
	ASSERT_LE(0, d);
	check_picture(_metadata, self->fd, &self->a, p, self->picture,
		      self->bytes);
	close(d);
	munmap(p, BUFFER);
	close(camera);
}

/* A READ_ONLY export is refused, since the camera would write to it through vmap. */
TEST_F(export_vivid, an_export_for_reading)
{
	int d;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, BUFFER, 0, &self->a));
	d = export_part(self->fd, self->a.address, 0, ACCMEM_EXPORT_READ_ONLY);
	ASSERT_LE(0, d);
	ASSERT_EQ(0, camera_buffers(self->camera, 1, V4L2_MEMORY_DMABUF));
	EXPECT_EQ(-EFAULT, camera_queue(self->camera, 0, d));
	close(d);
}

TEST_F(export_vivid, a_part_that_is_too_short)
{
	int d;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, BUFFER, 0, &self->a));
	d = export_part(self->fd, self->a.address, 4096, 0);
	ASSERT_LE(0, d);
	ASSERT_EQ(0, camera_buffers(self->camera, 1, V4L2_MEMORY_DMABUF));
	EXPECT_EQ(-EINVAL, camera_queue(self->camera, 0, d));
	close(d);
}

/* A camera that writes into a new buffer all the time */
struct shot {
	struct accmem_alloc a;
	char *p;
};

/* Gives the camera a new buffer, which is freed at once. */
static int shoot(int fd, int camera, unsigned int index, struct shot *shot)
{
	int d, err;

	err = accmem_alloc_bytes(fd, BUFFER, 0, &shot->a);
	if (err)
		return err;
	shot->p = accmem_mapped(fd, &shot->a, BUFFER);
	d = export_all(fd, &shot->a);
	if (d < 0)
		return d;
	err = camera_queue(camera, index, d) ?:
		      accmem_ioctl_free(fd, shot->a.address);
	close(d);
	return err;
}

TEST_F(export_vivid, buffers_are_freed_while_the_camera_writes)
{
	unsigned int i, n = accmem_scale(60) + 2 * NR_BUFFERS;
	struct shot shots[NR_BUFFERS] = {};
	int at;

	ASSERT_EQ(0,
		  camera_buffers(self->camera, NR_BUFFERS, V4L2_MEMORY_DMABUF));
	for (i = 0; i < NR_BUFFERS; i++)
		ASSERT_EQ(0, shoot(self->fd, self->camera, i, &shots[i]));
	ASSERT_EQ(0, camera_start(self->camera));
	for (i = 0; i < n; i++) {
		at = camera_picture(self->camera, V4L2_MEMORY_DMABUF);
		ASSERT_LE(0, at);
		EXPECT_EQ(0, memcmp(shots[at].p, self->picture, self->bytes));
		munmap(shots[at].p, BUFFER);
		ASSERT_EQ(0, shoot(self->fd, self->camera, at, &shots[at]));
	}
	for (i = 0; i < NR_BUFFERS; i++)
		munmap(shots[i].p, BUFFER);
	/* the camera alone keeps the memory */
	EXPECT_EQ(NR_BUFFERS * BUFFER,
		  accmem_sysfs(variant->path, "detached_bytes"));
	ASSERT_EQ(0, camera_stop(self->camera));
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "detached_bytes", 0, 5000));
}

/* The users of the memory end in every order, while the camera writes. */
TEST_F(export_vivid, users_end_in_every_order)
{
	unsigned int number;

	close(self->camera);
	self->camera = -1;
	close(self->fd);
	self->fd = -1;
	for (number = 0; number < ORDERS; number++) {
		struct order o = { .length = BUFFER };
		struct accmem_alloc a;

		o.fds[0] = accmem_opened(variant->path);
		o.fds[1] = camera_open(0, &self->bytes);
		ASSERT_LE(0, o.fds[1]);
		ASSERT_EQ(0, accmem_alloc_bytes(o.fds[0], BUFFER, 0, &a));
		o.p = accmem_mapped(o.fds[0], &a, BUFFER);
		o.fds[2] = export_all(o.fds[0], &a);
		ASSERT_LE(0, o.fds[2]);
		ASSERT_EQ(0, camera_buffers(o.fds[1], 1, V4L2_MEMORY_DMABUF));
		ASSERT_EQ(0, camera_queue(o.fds[1], 0, o.fds[2]));
		ASSERT_EQ(0, camera_start(o.fds[1]));
		order_end_all(&o, number);
		ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	}
}

/* The camera keeps its mapping. So the reset fails, and the contents are kept. */
TEST_F(export_vivid, reset_while_the_camera_writes)
{
	char *p;
	int d;

	self->a.length = BUFFER;
	d = take_picture(self->fd, self->camera, &self->a, &p);
	ASSERT_LE(0, d);
	memset(p, 0, self->bytes);
	ASSERT_EQ(0, camera_queue(self->camera, 0, d));
	EXPECT_EQ(-EBUSY, device_reset(variant->path));
	EXPECT_EQ(0, camera_picture(self->camera, V4L2_MEMORY_DMABUF));
	EXPECT_EQ(0, memcmp(p, self->picture, self->bytes));
	ASSERT_EQ(0, camera_stop(self->camera));
	EXPECT_EQ(0, device_reset(variant->path));
	EXPECT_EQ(SIGBUS, signal_at(p));
	munmap(p, BUFFER);
	close(d);
}

/* When the device is gone, nobody else gets the memory that the camera writes to. */
TEST_F(export_vivid, unbind_while_the_camera_writes)
{
	struct target target;
	char path[64], *p;
	int d;

	target_find(&target, variant->path);
	self->a.length = BUFFER;
	d = take_picture(self->fd, self->camera, &self->a, &p);
	ASSERT_LE(0, d);
	ASSERT_EQ(0, camera_queue(self->camera, 0, d));
	ASSERT_EQ(0, target_unbind(&target));
	EXPECT_EQ(SIGBUS, signal_at(p));
	EXPECT_EQ(0, camera_picture(self->camera, V4L2_MEMORY_DMABUF));
	munmap(p, BUFFER);
	close(d);
	close(self->fd);
	self->fd = -1;
	if (target_bind(&target)) {
		EXPECT_FALSE(target_node(&target, path, sizeof(path)));
	} else {
		ASSERT_TRUE(target_node(&target, path, sizeof(path)));
		EXPECT_STRNE(variant->path, path);
		ASSERT_EQ(0, target_unbind(&target));
	}
	ASSERT_EQ(0, camera_stop(self->camera));
	ASSERT_TRUE(target_restore(&target));
}

/* Memory of the cameras is not memory of the device. */
TEST_F(export_vivid, memory_of_a_camera_is_not_imported)
{
	unsigned int nr, open = accmem_nr_descriptors();

	close(self->camera);
	self->camera = -1;
	for (nr = 0; nr < 2; nr++) {
		int camera = camera_open(nr, &self->bytes), d = -1;
		char *p = camera_reference(camera, self->bytes, &d);

		ASSERT_NE(NULL, p);
		ASSERT_LE(0, d);
		EXPECT_EQ(-EOPNOTSUPP, import_foreign(self->fd, d));
		munmap(p, self->bytes);
		close(camera);
		EXPECT_EQ(-EOPNOTSUPP, import_foreign(self->fd, d));
		close(d);
	}
	EXPECT_EQ(open - 1, accmem_nr_descriptors());
}

ACCMEM_HARNESS_MAIN
