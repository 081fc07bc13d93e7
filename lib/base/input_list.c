/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps which files a run reads. */
#include "base/input_list.h"

#include <errno.h>
#include <stdlib.h>

static const char *find(const struct input_list *list, dev_t device, ino_t inode)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->files[i].device == device && list->files[i].inode == inode)
			return list->files[i].option;
	return NULL;
}

static int add(struct input_list *list, const struct input_file *file)
{
	struct input_file *files;

	if (find(list, file->device, file->inode))
		return 0;
	files = realloc(list->files, (list->count + 1) * sizeof(*files));
	if (!files)
		return -ENOMEM;
	files[list->count++] = *file;
	list->files = files;
	return 0;
}

int input_list_add(struct input_list *list, const struct stat *status, const char *option)
{
	const struct input_file file = { status->st_dev, status->st_ino, option };

	return add(list, &file);
}

int input_list_add_path(struct input_list *list, const char *path, const char *option)
{
	struct stat status;

	return path && stat(path, &status) == 0 ? input_list_add(list, &status, option) : 0;
}

int input_list_add_all(struct input_list *list, const struct input_list *more)
{
	int ret = 0;

	for (size_t i = 0; i < more->count && ret == 0; i++)
		ret = add(list, &more->files[i]);
	return ret;
}

const char *input_list_find(const struct input_list *list, const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 ? find(list, status.st_dev, status.st_ino) : NULL;
}

void input_list_free(struct input_list *list)
{
	free(list->files);
	*list = (struct input_list){ 0 };
}
