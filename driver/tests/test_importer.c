// SPDX-License-Identifier: GPL-2.0
/*
 * Test importers: /dev/test-importer imports dma-bufs as a test says.
 *
 * The module stands for another driver in tests of accmem. An open file is an importer;
 * the last close unmaps and detaches the dma-buf. The CPU copies in place of the device: a DMA
 * address is a physical address, or the tables of the IOMMU give the physical address.
 *
 * Locking: importer.lock > the dma_resv, which guards importer.sgt.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat/dma_buf.h"
#include "test_importer.h"

ACCMEM_IMPORT_DMA_BUF;

#define COPY_MAX SZ_1M

static struct platform_device *wide, *narrow;
static struct pci_dev *pci, *second_pci; /* or NULL */

/**
 * struct importer - an importer
 * @lock: held by an ioctl
 * @kind: TEST_IMPORTER_*
 * @dma_buf: the dma-buf, or NULL
 * @attach: the attachment, with @dma_buf
 * @sgt: the mapping, or NULL
 * @dir: direction of @sgt
 * @notified: number of requests to unmap
 * @map: the kernel's mapping, unless it is null
 * @slow: unmaps
 */
struct importer {
	struct mutex lock; /* an ioctl */
	u32 kind;
	struct dma_buf *dma_buf;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	enum dma_data_direction dir;
	u32 notified;
	struct iosys_map map;
	struct delayed_work slow;
};

static void importer_unmap_locked(struct importer *importer)
{
	dma_resv_assert_held(importer->dma_buf->resv);
	if (importer->sgt)
		dma_buf_unmap_attachment(importer->attach, importer->sgt,
					 importer->dir);
	importer->sgt = NULL;
}

static void importer_unmap(struct importer *importer)
{
	dma_resv_lock(importer->dma_buf->resv, NULL);
	importer_unmap_locked(importer);
	dma_resv_unlock(importer->dma_buf->resv);
}

static void importer_slow(struct work_struct *work)
{
	importer_unmap(container_of(work, struct importer, slow.work));
}

/* The exporter asks for its memory. The dma_resv is held. */
static void importer_notify(struct dma_buf_attachment *attach)
{
	struct importer *importer = attach->importer_priv;

	importer->notified++;
	/* The dma-buf may be revoked while the importer attaches. */
	if (importer->kind & TEST_IMPORTER_KEEPS || !importer->attach)
		return;
	if (importer->kind & TEST_IMPORTER_SLOW)
		schedule_delayed_work(&importer->slow,
				      msecs_to_jiffies(TEST_IMPORTER_SLOW_MS));
	else
		importer_unmap_locked(importer);
}

static const struct dma_buf_attach_ops importer_ops = {
	.allow_peer2peer = true,
	.ACCMEM_DMA_BUF_ATTACH_OP = importer_notify,
};

static struct miscdevice importer_device;

static struct device *importer_dev(u32 kind)
{
	if (kind & TEST_IMPORTER_NO_MASK)
		return importer_device.this_device;
	if (kind & TEST_IMPORTER_PCI)
		return pci ? &pci->dev : NULL;
	if (kind & TEST_IMPORTER_SECOND_PCI)
		return second_pci ? &second_pci->dev : NULL;
	return kind & TEST_IMPORTER_NARROW ? &narrow->dev : &wide->dev;
}

static int importer_attach(struct importer *importer, void __user *arg)
{
	struct dma_buf_attachment *attach;
	struct test_importer_attach req;
	struct dma_buf *dma_buf;

	if (copy_from_user(&req, arg, sizeof(req)))
		return -EFAULT;
	if (importer->dma_buf)
		return -EBUSY;
	if (!importer_dev(req.kind))
		return -ENODEV;
	dma_buf = dma_buf_get(req.fd);
	if (IS_ERR(dma_buf))
		return PTR_ERR(dma_buf);
	importer->kind = req.kind;
	importer->notified = 0;
	attach = dma_buf_dynamic_attach(dma_buf, importer_dev(req.kind),
					req.kind & TEST_IMPORTER_DYNAMIC ?
						&importer_ops :
						NULL,
					importer);
	if (IS_ERR(attach)) {
		dma_buf_put(dma_buf);
		return PTR_ERR(attach);
	}
	importer->dma_buf = dma_buf;
	importer->attach = attach;
	return 0;
}

static void importer_vunmap(struct importer *importer)
{
	dma_resv_lock(importer->dma_buf->resv, NULL);
	dma_buf_vunmap(importer->dma_buf, &importer->map);
	dma_resv_unlock(importer->dma_buf->resv);
	iosys_map_clear(&importer->map);
}

static int importer_detach(struct importer *importer)
{
	if (!iosys_map_is_null(&importer->map))
		importer_vunmap(importer);
	cancel_delayed_work_sync(&importer->slow);
	importer_unmap(importer);
	dma_buf_detach(importer->dma_buf, importer->attach);
	dma_buf_put(importer->dma_buf);
	importer->attach = NULL;
	importer->dma_buf = NULL;
	return 0;
}

static void importer_describe(const struct importer *importer,
			      struct test_importer_map *req)
{
	struct scatterlist *sg;
	unsigned int i;

	req->nr = importer->sgt->nents;
	for_each_sgtable_dma_sg(importer->sgt, sg, i)
		req->bytes += sg_dma_len(sg);
	req->pages = sg_page(importer->sgt->sgl) ? 1 : 0;
	req->iommu = device_iommu_mapped(importer->attach->dev) ? 1 : 0;
}

static int importer_map_locked(struct importer *importer,
			       struct test_importer_map *req)
{
	struct sg_table *sgt;

	if (importer->sgt)
		return -EBUSY;
	sgt = dma_buf_map_attachment(importer->attach, req->direction);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	importer->sgt = sgt;
	importer->dir = req->direction;
	importer_describe(importer, req);
	return 0;
}

static int importer_map(struct importer *importer, void __user *arg)
{
	struct test_importer_map req;
	int err;

	if (copy_from_user(&req, arg, sizeof(req)))
		return -EFAULT;
	if (req.direction > TEST_IMPORTER_WRITES)
		return -EINVAL;
	req.bytes = 0;
	dma_resv_lock(importer->dma_buf->resv, NULL);
	err = importer_map_locked(importer, &req);
	dma_resv_unlock(importer->dma_buf->resv);
	if (!err && copy_to_user(arg, &req, sizeof(req)))
		err = -EFAULT;
	return err;
}

static int importer_vmap(struct importer *importer)
{
	int err;

	if (!iosys_map_is_null(&importer->map))
		return -EBUSY;
	dma_resv_lock(importer->dma_buf->resv, NULL);
	err = dma_buf_vmap(importer->dma_buf, &importer->map);
	dma_resv_unlock(importer->dma_buf->resv);
	return err;
}

/* Return the physical address of a DMA address. @size is cut to the contiguous bytes. */
static phys_addr_t importer_physical(const struct importer *importer,
				     dma_addr_t address, u64 *size)
{
	struct device *dev = importer->attach->dev;

	if (!device_iommu_mapped(dev))
		return address;
	*size = min_t(u64, *size, PAGE_SIZE - offset_in_page(address));
	return iommu_iova_to_phys(iommu_get_domain_for_dev(dev), address);
}

static int importer_copy_bytes(phys_addr_t address, char *bytes, u64 size,
			       bool write)
{
	char *at = memremap(address, size, MEMREMAP_WB);

	if (!at)
		return -ENXIO;
	if (write)
		memcpy(at, bytes, size);
	else
		memcpy(bytes, at, size);
	memunmap(at);
	return 0;
}

/* Copy as the device does, where the entry of the table begins at @start. */
static int importer_copy_entry(const struct importer *importer,
			       struct scatterlist *sg, u64 start,
			       const struct test_importer_copy *req,
			       char *bytes)
{
	u64 at = max(req->offset, start), part;
	u64 end = min(req->offset + req->length, start + sg_dma_len(sg));
	phys_addr_t address;
	int err = 0;

	for (; at < end && !err; at += part) {
		part = end - at;
		address = importer_physical(importer,
					    sg_dma_address(sg) + (at - start),
					    &part);
		err = importer_copy_bytes(address, bytes + (at - req->offset),
					  part, req->write);
	}
	return err;
}

static int importer_copy_as_device(struct importer *importer,
				   const struct test_importer_copy *req,
				   char *bytes)
{
	struct scatterlist *sg;
	unsigned int i;
	u64 start = 0;
	int err = 0;

	dma_resv_lock(importer->dma_buf->resv, NULL);
	if (!importer->sgt) {
		dma_resv_unlock(importer->dma_buf->resv);
		return -ENXIO;
	}
	for_each_sgtable_dma_sg(importer->sgt, sg, i) {
		err = importer_copy_entry(importer, sg, start, req, bytes);
		if (err)
			break;
		start += sg_dma_len(sg);
	}
	dma_resv_unlock(importer->dma_buf->resv);
	return err;
}

static int importer_copy_as_cpu(struct importer *importer,
				const struct test_importer_copy *req,
				char *bytes)
{
	if (iosys_map_is_null(&importer->map))
		return -ENXIO;
	if (req->write)
		iosys_map_memcpy_to(&importer->map, req->offset, bytes,
				    req->length);
	else
		iosys_map_memcpy_from(bytes, &importer->map, req->offset,
				      req->length);
	return 0;
}

static int importer_copy(struct importer *importer, void __user *arg)
{
	struct test_importer_copy req;
	char *bytes;
	int err;

	if (copy_from_user(&req, arg, sizeof(req)))
		return -EFAULT;
	if (!req.length || req.length > COPY_MAX ||
	    req.length > importer->dma_buf->size ||
	    req.offset > importer->dma_buf->size - req.length)
		return -EINVAL;
	bytes = req.write ?
			vmemdup_user(u64_to_user_ptr(req.data), req.length) :
			kvzalloc(req.length, GFP_KERNEL);
	if (IS_ERR_OR_NULL(bytes))
		return bytes ? PTR_ERR(bytes) : -ENOMEM;
	err = req.by_cpu ? importer_copy_as_cpu(importer, &req, bytes) :
			   importer_copy_as_device(importer, &req, bytes);
	if (!err && !req.write &&
	    copy_to_user(u64_to_user_ptr(req.data), bytes, req.length))
		err = -EFAULT;
	kvfree(bytes);
	return err;
}

static int importer_query(struct importer *importer, void __user *arg)
{
	struct test_importer_query req;

	dma_resv_lock(importer->dma_buf->resv, NULL);
	req.notified = importer->notified;
	req.mapped = importer->sgt ? 1 : 0;
	dma_resv_unlock(importer->dma_buf->resv);
	return copy_to_user(arg, &req, sizeof(req)) ? -EFAULT : 0;
}

static int importer_do(struct importer *importer, unsigned int cmd,
		       void __user *arg)
{
	if (cmd == TEST_IMPORTER_ATTACH)
		return importer_attach(importer, arg);
	if (!importer->dma_buf)
		return -ENOTCONN;
	switch (cmd) {
	case TEST_IMPORTER_DETACH:
		return importer_detach(importer);
	case TEST_IMPORTER_MAP:
		return importer_map(importer, arg);
	case TEST_IMPORTER_UNMAP:
		importer_unmap(importer);
		return 0;
	case TEST_IMPORTER_VMAP:
		return importer_vmap(importer);
	case TEST_IMPORTER_VUNMAP:
		if (iosys_map_is_null(&importer->map))
			return -ENXIO;
		importer_vunmap(importer);
		return 0;
	case TEST_IMPORTER_COPY:
		return importer_copy(importer, arg);
	case TEST_IMPORTER_QUERY:
		return importer_query(importer, arg);
	default:
		return -ENOTTY;
	}
}

static long importer_ioctl(struct file *file, unsigned int cmd,
			   unsigned long arg)
{
	struct importer *importer = file->private_data;
	int err;

	mutex_lock(&importer->lock);
	err = importer_do(importer, cmd, (void __user *)arg);
	mutex_unlock(&importer->lock);
	return err;
}

static int importer_open(struct inode *inode, struct file *file)
{
	struct importer *importer = kzalloc(sizeof(*importer), GFP_KERNEL);

	if (!importer)
		return -ENOMEM;
	mutex_init(&importer->lock);
	INIT_DELAYED_WORK(&importer->slow, importer_slow);
	file->private_data = importer;
	return 0;
}

static int importer_release(struct inode *inode, struct file *file)
{
	struct importer *importer = file->private_data;

	if (importer->dma_buf)
		importer_detach(importer);
	kfree(importer);
	return 0;
}

static const struct file_operations importer_fops = {
	.owner = THIS_MODULE,
	.open = importer_open,
	.release = importer_release,
	.unlocked_ioctl = importer_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice importer_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "test-importer",
	.fops = &importer_fops,
	.mode = 0600,
};

static struct platform_device *importer_add(int id, unsigned int lines)
{
	struct platform_device *device =
		platform_device_register_simple("test-importer", id, NULL, 0);

	/* Not dma_set_mask(), which refuses 24 lines in a kernel without ZONE_DMA. */
	if (!IS_ERR(device))
		device->platform_dma_mask = DMA_BIT_MASK(lines);
	return device;
}

static int __init importer_init(void)
{
	int err;

	wide = importer_add(0, 64);
	if (IS_ERR(wide))
		return PTR_ERR(wide);
	narrow = importer_add(1, 24);
	err = PTR_ERR_OR_ZERO(narrow);
	if (err)
		goto err_wide;
	pci = pci_get_device(PCI_VENDOR_ID_REDHAT, 0x0005, NULL);
	if (pci)
		second_pci = pci_get_device(PCI_VENDOR_ID_REDHAT, 0x0005,
					    pci_dev_get(pci));
	err = misc_register(&importer_device);
	if (!err)
		return 0;
	pci_dev_put(second_pci);
	pci_dev_put(pci);
	platform_device_unregister(narrow);
err_wide:
	platform_device_unregister(wide);
	return err;
}

static void __exit importer_exit(void)
{
	misc_deregister(&importer_device);
	pci_dev_put(second_pci);
	pci_dev_put(pci);
	platform_device_unregister(narrow);
	platform_device_unregister(wide);
}

module_init(importer_init);
module_exit(importer_exit);

MODULE_DESCRIPTION("Importers of dma-bufs for tests of accmem");
MODULE_LICENSE("GPL");
