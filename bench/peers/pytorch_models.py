"""The models of worker/model/ in PyTorch, layer for layer, and batches for them in memory."""
import torch
from torch import nn
from torch.nn import functional

BATCHES = 4  # taken in turn


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(32, 32, 3), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(64, 64, 3), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(2304, 512), nn.ReLU(inplace=True), nn.Dropout(0.5),
        nn.Linear(512, 10))


def lenet5():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(inplace=True),
        nn.Linear(120, 84), nn.ReLU(inplace=True), nn.Linear(84, 10))


class Subsample(nn.Module):
    """Every stride-th row and column, and channels of zeros."""

    def __init__(self, stride, new_channels):
        super().__init__()
        self.stride, self.new_channels = stride, new_channels

    def forward(self, x):
        x = x[:, :, ::self.stride, ::self.stride]
        return functional.pad(x, (0, 0, 0, 0, 0, self.new_channels)) if self.new_channels else x


class Block(nn.Module):
    """Of resnet20: relu behind the sum."""

    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))
        self.shortcut = Subsample(stride, channels - inputs) if stride > 1 else nn.Identity()

    def forward(self, x):
        return functional.relu(self.branch(x) + self.shortcut(x), inplace=True)


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    inputs = 16
    for channels in (16, 32, 64):
        for _ in range(3):
            layers.append(Block(inputs, channels, 2 if inputs != channels else 1))
            inputs = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class BlockV2(nn.Module):
    """Of resnet50v2 and resnet152v2, as Keras has it: pre-activation, the last block of a stage strides."""

    def __init__(self, inputs, narrow, stride, has_projection):
        super().__init__()
        self.norm = nn.Sequential(nn.BatchNorm2d(inputs, 1.001e-5), nn.ReLU(inplace=True))
        self.projection = nn.Conv2d(inputs, 4 * narrow, 1) if has_projection else None
        self.shortcut = Subsample(stride, 0) if stride > 1 else nn.Identity()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, narrow, 1, bias=False), nn.BatchNorm2d(narrow, 1.001e-5),
            nn.ReLU(inplace=True),
            nn.Conv2d(narrow, narrow, 3, stride, 1, bias=False), nn.BatchNorm2d(narrow, 1.001e-5),
            nn.ReLU(inplace=True),
            nn.Conv2d(narrow, 4 * narrow, 1))

    def forward(self, x):
        normed = self.norm(x)
        shortcut = self.projection(normed) if self.projection else self.shortcut(x)
        return self.branch(normed) + shortcut


def resnet_v2(all_blocks):
    layers = [nn.Conv2d(3, 64, 7, 2, 3), nn.ZeroPad2d(1), nn.MaxPool2d(3, 2)]
    inputs = 64
    for stage, blocks in enumerate(all_blocks):
        for block in range(blocks):
            stride = 2 if block + 1 == blocks and stage < 3 else 1
            layers.append(BlockV2(inputs, 64 << stage, stride, block == 0))
            inputs = 256 << stage
    return nn.Sequential(*layers, nn.BatchNorm2d(inputs, 1.001e-5), nn.ReLU(inplace=True),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def vgg16(size):
    layers, inputs = [], 3
    for channels, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions):
            layers += [nn.Conv2d(inputs, channels, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = channels
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * (size // 32) ** 2, 4096),
                         nn.ReLU(inplace=True), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
                         nn.Linear(4096, 10))


def set_precision(precision, is_deterministic):
    """Of products on a GPU; cuDNN takes the fastest algorithms that it finds, and may."""
    if is_deterministic:
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True


# Each makes the model for images of so many rows and columns.
MODELS = {
    "cnn": lambda size: cnn(),
    "lenet5": lambda size: lenet5(),
    "resnet20": lambda size: resnet20(),
    "resnet50v2": lambda size: resnet_v2((3, 4, 6, 3)),
    "resnet152v2": lambda size: resnet_v2((3, 8, 36, 3)),
    "vgg16": vgg16,
}


def size_of(name, size):
    """Of images; 0: as the data set has them."""
    return 28 if name == "lenet5" else size or 32


def make_model(name, size, is_channels_last):
    """Its first weights are distributed as ours are."""
    model = MODELS[name](size_of(name, size))
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    if is_channels_last:
        model = model.to(memory_format=torch.channels_last)
    return model.train()


def make_batches(name, batch, size, is_channels_last):
    """Pairs of images and labels; size is that of images, 0: as the data set has them."""
    pixels = size_of(name, size)
    shape = (1 if name == "lenet5" else 3, pixels, pixels)
    batches = [(torch.rand(batch, *shape) * 2 - 1, torch.randint(0, 10, (batch,)))
               for _ in range(BATCHES)]
    if is_channels_last:
        batches = [(x.contiguous(memory_format=torch.channels_last), y) for x, y in batches]
    return batches


def count_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def make_optimizer(model, kind):
    """Momentum SGD; kind: default, foreach (many tensors a call) or fused (one pass)."""
    options = {} if kind == "default" else {kind: True}
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **options)


def compile_loss(model, execution):
    """loss(x, y), as it is or compiled. Kernels of compile-cpp are called from C++ instead of Python;
    reduce-overhead launches them as CUDA graphs, max-autotune also times them before it chooses."""
    def loss(x, y):
        return functional.cross_entropy(model(x), y)

    if execution == "eager":
        return loss
    if execution in ("reduce-overhead", "max-autotune"):
        return torch.compile(loss, mode=execution)
    import torch._inductor.config as inductor  # pylint: disable=import-outside-toplevel
    inductor.cpp_wrapper = execution == "compile-cpp"
    return torch.compile(loss)
